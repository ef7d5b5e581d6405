"""`thimble harmony`: plans training of a model larger than its GPUs, and simulates it."""

import json
import os
import signal
import time

from thimble_gpu import abi
from thimble_gpu import harmony_page
from thimble_gpu import offline
from thimble_gpu import progress
from thimble_gpu import temporary
from thimble_gpu import text
from thimble_gpu.commands import topology


def add_to(commands):
    parser = commands.add_parser(
        "harmony", help="plan and simulate training of a model larger than its GPUs",
        description="Reads the costs of a model's layers, plans one training iteration on GPUs "
        "that are too small for it, and simulates it. The profile has a line per microbatch size "
        "and layer: ubatch,layer,weight_bytes,fwd_gpu_s,bwd_gpu_s,upd_cpu_s,fwd_mem_bytes,"
        "bwd_mem_bytes,x_elems and, if layers have buffers, buffer_bytes. An independent validator "
        "checks every schedule before it is shown.",
        epilog="Figures: seconds of one iteration, simulated; swap_bytes between host and GPUs "
        "(swap_in_bytes + swap_out_bytes), p2p_bytes between GPUs; compute_fraction of the GPUs' "
        "time; peak_bytes, the most on any GPU; compute_bound, seconds of computing alone if every "
        "layer outside the last pack is run forward again; planning_seconds to plan; with "
        "--baselines, the results of LRU virtual memory and the published search. Exit status: 0 "
        "done, 1 no plan fits, 2 bad usage or bad file.")
    parser.add_argument("profile", metavar="PROFILE.csv")
    parser.add_argument("--gpus", metavar="N", help="1 to 8 (default: all of the topology)")
    parser.add_argument("--memory", metavar="BYTES", required=True, help="of each GPU (10GiB)")
    parser.add_argument("--batch", metavar="D", required=True, help="samples of an iteration")
    parser.add_argument("--mode", metavar="MODE", help="dp, pp or auto (default)")
    parser.add_argument("--rules", metavar="RULES",
                        help="thimble (default), or harmony: the published system's")
    parser.add_argument("--prefetch", action="store_const", const="on",
                        help="rules harmony: with prefetch")
    parser.add_argument("--packers", metavar="SET",
                        help="rules harmony: published, all, or names joined by +")
    parser.add_argument("--topology", metavar="FILE",
                        help="switches, links and NVLinks; machine: those of this machine, as "
                        "`thimble topology` prints them")
    parser.add_argument("--seconds", metavar="S", help="of search (default: 4)")
    parser.add_argument("--swap-limit", metavar="BYTES", dest="swap_limit",
                        help="bytes that may be swapped; more count as lost time; or off")
    parser.add_argument("--keep", metavar="on|off",
                        help="keep activations for the backward pass if that helps (default: on)")
    parser.add_argument("--resident", metavar="on|off",
                        help="leave packs on their GPU, updated there, if that helps (default: on)")
    parser.add_argument("--plan", metavar="OUT.json", help="write the plan")
    parser.add_argument("--schedule", metavar="OUT.json", help="write every action with its times")
    parser.add_argument("--gantt", metavar="OUT.html", help="draw the actions")
    parser.add_argument("--baselines", action="store_const", const="on",
                        help="also LRU virtual memory and the published search (as published, "
                        "without prefetch; and with prefetch and all its packers)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(function=_harmony)


def _harmony(options):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's waits for the search to end
    keys = ("profile", "gpus", "memory", "batch", "mode", "rules", "prefetch", "packers", "keep",
            "resident", "seconds", "swap_limit", "plan", "baselines")
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
        try:
            with progress.Progress(options.profile):
                answer = offline.run("harmony", topology=links, schedule=schedule,
                                     **{key: getattr(options, key) for key in keys})
        except abi.ThimbleError as error:
            text.tell(f"thimble harmony: {error}")
            return 1 if error.status == abi.OUT_OF_MEMORY else 2
        seconds = round(time.monotonic() - start, 3)
        if options.gantt is not None:
            harmony_page.write(schedule, options.gantt)
    line = {"file": options.profile, **answer, "planning_seconds": seconds}
    if options.json:
        print(json.dumps(line), flush=True)
    else:
        _show(line)
    return 0


def _show(line):
    print(f"{'':24} {'seconds':>10} {'swapped GiB':>12} {'compute %':>10}")
    rows = {f"{line['rules']} {line['mode']}": line, **line.get("baselines", {})}
    for name, row in rows.items():
        print(f"{name:24} {row['seconds']:10.3f} {row['swap_bytes'] / 2**30:12.2f} "
              f"{row['compute_fraction'] * 100:10.1f}")
    packs = line["forward_packs"] + line["backward_packs"]
    print(f"between GPUs {line['p2p_bytes'] / 2**30:.2f} GiB, at most "
          f"{line['peak_bytes'] / 2**30:.2f} GiB on a GPU, {packs} tasks, planned in "
          f"{line['planning_seconds']:.1f} s")
