"""`thimble harmony`: how to train a model that is larger than its GPUs, and how long that takes."""

import ctypes
import json
import os
import signal
import time

from thimble_gpu import abi
from thimble_gpu import harmony_page
from thimble_gpu import progress
from thimble_gpu import temporary
from thimble_gpu import text
from thimble_gpu import topology


def add_to(commands):
    parser = commands.add_parser(
        "harmony", help="plan and simulate training of a model larger than its GPUs",
        description="Reads what the layers of a model cost, plans one iteration of training on "
        "GPUs that are too small for it, and simulates that.")
    parser.add_argument("profile", metavar="PROFILE.csv")
    parser.add_argument("--gpus", metavar="N", help="1 to 8; without it, all of the topology")
    parser.add_argument("--memory", metavar="BYTES", required=True, help="of each GPU (10GiB)")
    parser.add_argument("--batch", metavar="D", required=True, help="samples of an iteration")
    parser.add_argument("--mode", metavar="MODE", help="dp, pp or auto (the default)")
    parser.add_argument("--rules", metavar="RULES",
                        help="thimble (the default), or harmony: the published system's own")
    parser.add_argument("--prefetch", action="store_const", const="on",
                        help="rules harmony: with prefetch")
    parser.add_argument("--packers", metavar="SET",
                        help="rules harmony: published, all, or names with + between")
    parser.add_argument("--topology", metavar="FILE",
                        help="switches, links and NVLinks; machine: those of this one, as `thimble "
                        "topology` prints them")
    parser.add_argument("--seconds", metavar="S", help="of search (default: 4)")
    parser.add_argument("--swap-limit", metavar="BYTES", dest="swap_limit",
                        help="what may be swapped before that counts as lost time, or off")
    parser.add_argument("--keep", metavar="on|off",
                        help="may activations stay for the backward pass? (default: on)")
    parser.add_argument("--resident", metavar="on|off",
                        help="may packs stay on their GPU and be updated there? (default: on)")
    parser.add_argument("--plan", metavar="OUT.json", help="write the plan, for who runs it")
    parser.add_argument("--schedule", metavar="OUT.json", help="write every step with its times")
    parser.add_argument("--gantt", metavar="OUT.html", help="draw the steps")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(function=_harmony)


def _harmony(options):
    core = abi.installed_core()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would wait for the end of a search
    keys = ("gpus", "memory", "batch", "mode", "rules", "prefetch", "packers", "keep", "resident",
            "seconds", "swap_limit")
    settings = ",".join(f"{key}:{getattr(options, key)}" for key in keys
                        if getattr(options, key) is not None)
    info = abi.HarmonyInfo(struct_size=ctypes.sizeof(abi.HarmonyInfo))
    with temporary.folder() as (folder, _):
        schedule = options.schedule
        if options.gantt is not None and schedule is None:
            schedule = os.path.join(folder, "schedule.json")
        links = options.topology
        if links == "machine":
            links = os.path.join(folder, "machine")
            written = topology.read()
            if written is None:
                return 1
            with open(links, "w", encoding="utf-8") as file:
                file.write(written)
        start = time.monotonic()
        paths = [None if path is None else os.fsencode(path)
                 for path in (options.profile, links, options.plan, schedule)]
        with progress.Progress(options.profile):
            status = core.harmony_file(paths[0], paths[1], settings.encode(), paths[2], paths[3],
                                       info)
        seconds = round(time.monotonic() - start, 3)
        if status != abi.OK:
            text.tell(f"thimble harmony: {core.last_error().decode(errors='replace')}")
            return 1 if status == abi.OUT_OF_MEMORY else 2
        if options.gantt is not None:
            harmony_page.write(schedule, options.gantt)
    line = _line(options, info, seconds)
    if options.json:
        print(json.dumps(line), flush=True)
    else:
        _show(line)
    return 0


def _line(options, info, planning_seconds):
    line = {"file": options.profile, "mode": "pp" if info.is_pipeline else "dp",
            "rules": options.rules or "thimble", "batch": int(options.batch),
            "seconds": info.ns / 1e9, "swap_bytes": info.swap_in_bytes + info.swap_out_bytes}
    line.update((name, getattr(info, name)) for name in (
        "swap_in_bytes", "swap_out_bytes", "p2p_bytes"))
    line["compute_fraction"] = info.compute_ppm / 1e6
    line["peak_bytes"] = info.peak_bytes
    if info.bound_ns:
        line["compute_bound"] = info.bound_ns / 1e9
    line.update((name, getattr(info, name)) for name in (
        "swap_limit", "forward_packs", "backward_packs"))
    line["baselines"] = {
        name: {"seconds": getattr(info, name + "_ns") / 1e9,
               "swap_bytes": getattr(info, name + "_swap_bytes"),
               "compute_fraction": getattr(info, name + "_compute_ppm") / 1e6}
        for name in abi.BASELINES if getattr(info, name + "_ns")}
    line["planning_seconds"] = planning_seconds
    return line


def _show(line):
    print(f"{'':24} {'seconds':>10} {'swapped GiB':>12} {'compute %':>10}")
    rows = {f"{line['rules']} {line['mode']}": line, **line["baselines"]}
    for name, row in rows.items():
        print(f"{name:24} {row['seconds']:10.3f} {row['swap_bytes'] / 2**30:12.2f} "
              f"{row['compute_fraction'] * 100:10.1f}")
    packs = line["forward_packs"] + line["backward_packs"]
    print(f"between GPUs {line['p2p_bytes'] / 2**30:.2f} GiB, at most "
          f"{line['peak_bytes'] / 2**30:.2f} GiB on a GPU, {packs} tasks, planned in "
          f"{line['planning_seconds']:.1f} s")
