"""`thimble selftest`: tries on every GPU what Thimble relies on, and measures its prices."""

import ctypes
import datetime
import json
import os
import platform
import subprocess
import sys
import threading

from thimble_gpu import text
from thimble_gpu.selftest import record
from thimble_gpu.selftest.cuda import Cuda
from thimble_gpu.selftest.cuda import NoDriver
from thimble_gpu.version import __version__

_SECONDS = 120  # for one GPU


def add_to(commands):
    parser = commands.add_parser(
        "selftest", help="try on your GPUs what Thimble relies on, and measure prices",
        description="Tries on every visible GPU what Thimble relies on of the driver, and measures "
        "what calls and copies cost. It takes at most two minutes per GPU and 512 MiB of its "
        "memory; other programs may run meanwhile, but make prices worse. The file that it writes "
        "is for `thimble doctor`, `swap`, `topology` and `harmony`; attach it to an issue about a "
        "GPU.",
        epilog="One line per check. ok: it is as Thimble expects. broken: the driver does "
        "something else; please report it. lost: this device cannot do it, and what Thimble does "
        "not do then. unproven: nothing was computed, because the GPU is simulated. Exit status: 0 "
        "nothing is broken, 1 something is, or there is no GPU, 2 bad usage, or the file cannot be "
        "written.")
    parser.add_argument("--out", metavar="MACHINE.json", default=record.default_path(),
                        help="where to write verdicts and prices (default: %(default)s)")
    parser.set_defaults(function=_selftest)


def _selftest(options):
    record.prepare(options.out)
    try:
        cuda = Cuda()
        about = _about(cuda)
        count = cuda.number("cuDeviceGetCount")
        if count == 0:
            raise NoDriver("the CUDA driver shows no GPU: check CUDA_VISIBLE_DEVICES")
    except NoDriver as problem:
        text.tell(f"thimble selftest: {problem}")
        return 1
    gpus = [_Child(number).run() for number in range(count)]
    result = {**about, "gpus": [gpu for gpu in gpus if gpu is not None]}
    if None in gpus:
        return 1
    record.write(result, options.out)
    print(f"{record.summary(result)}; prices and verdicts are in {options.out}")
    if about["simulated"]:
        print("This GPU is simulated: nothing was computed, and its prices are not a GPU's.")
    return 1 if record.count(result)["broken"] else 0


def _about(cuda):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"format": record.FORMAT, "made": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "thimble": __version__, "driver": _driver_version(),
            "cuda": cuda.number("cuDriverGetVersion"), "linux": platform.release(),
            "python": platform.python_version(), "simulated": cuda.is_simulated}


def _driver_version():
    """As nvidia-smi shows it; "unknown" without NVML."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        version = ctypes.create_string_buffer(80)
        known = library.nvmlInit_v2() == 0 and library.nvmlSystemGetDriverVersion(version, 80) == 0
    except (OSError, AttributeError):
        return "unknown"
    return version.value.decode() if known else "unknown"


class _Child:
    """The process that tests one GPU, and what it has said."""

    def __init__(self, number):
        self._number = number
        self._found = {"verdicts": []}
        self._now = None  # the check that runs

    def run(self):
        """What the record says about the GPU; None if it could not be tested, which was told."""
        child = subprocess.Popen(
            [sys.executable, "-m", "thimble_gpu.selftest.child", str(self._number)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"})
        late = threading.Event()
        watch = threading.Timer(_SECONDS, lambda: (late.set(), child.kill()))
        watch.start()
        errors = []
        reader = threading.Thread(target=lambda: errors.append(child.stderr.read()))
        reader.start()
        try:
            for line in child.stdout:
                self._take(json.loads(line))
        finally:
            watch.cancel()
            status = child.wait()
            reader.join()
        if status == 0:
            return self._found
        if late.is_set():
            reason = f"no answer within {_SECONDS} seconds"
        else:
            said = "".join(errors).strip().splitlines()
            reason = said[-1] if said else f"the process {text.how_ended(status)}"
        if self._now is None:
            text.tell(f"thimble selftest: GPU {self._number}: {reason}")
            return None
        self._take({"check": self._now, "status": "broken",
                    "text": f"{reason}; what comes after it was not tried"})
        return self._found

    def _take(self, line):
        if "begin" in line:
            self._now = line["begin"]
        elif "gpu" in line:
            self._found.update(line["gpu"])
            print("GPU {number}: {name}, {size}".format(
                size=text.size(line["gpu"]["bytes"]), **line["gpu"]), flush=True)
        elif "check" in line:
            self._found["verdicts"].append(line)
            print("{status:9}{check}: {text}".format(**line), flush=True)
        else:
            self._found.update(line)
