"""`thimble doctor`: reports what is installed, what is on and what is wrong, one line each."""

import json
import os
import platform
import re
import subprocess
import sys

import thimble_gpu
from thimble_gpu import conf
from thimble_gpu import frameworks
from thimble_gpu import text
from thimble_gpu import variables
from thimble_gpu.selftest import record
from thimble_gpu.version import __version__

OK, OFF, ABSENT, WRONG = "ok", "off", "absent", "wrong"  # and "ignored", of variables
MOST_SECONDS = 180  # for a framework to start; generous, for slow machines

# Relative to site-packages: files that must exist, and files that must exist only once.
ESSENTIAL = ("thimble.pth", "thimble_boot.py", "tensorflow-plugins/libthimble_tf.so",
             "thimble_gpu/lib/libthimble.so", "thimble_gpu/lib/libthimble_offline.so",
             "thimble_gpu/lib/libthimble_tf_hooks.so",
             "thimble_gpu/lib/libthimble_xla.so", "thimble_gpu/lib/libthimble_bfc.so")
SINGLE = ("thimble_boot.py", "tensorflow-plugins/libthimble_tf.so")

# What a child process writes about Thimble: lines of its own, or of TensorFlow's log.
REASON = re.compile(r"^thimble: (.*)|\b(Thimble(?: does not|: THIMBLE_CONF| was| is installed).*)",
                    re.MULTILINE)


def add_to(commands):
    parser = commands.add_parser(
        "doctor", help="check what is installed, what is on and what is wrong")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.set_defaults(function=_doctor)


def _doctor(options):
    works = False
    for name, status, what in checks(dict(os.environ)):
        if options.json:
            print(json.dumps({"check": name, "status": status, "text": what}), flush=True)
        else:
            print(f"{status:8}{name}: {what}", flush=True)
        works = works or (name.endswith(" on Thimble") and status in (OK, OFF))
    return 0 if works else 1


def checks(environment):
    """Yields (name, status, text) for everything that was checked."""
    started = {name: _start(name, environment) for name in ("tensorflow", "jax", "driver")
               if not _problem(name)}
    yield "Python", OK, f"{platform.python_version()}, {sys.executable}"
    yield from installation()
    yield "TensorFlow", *_installed("tensorflow", frameworks.tensorflow_version())
    yield "JAX", *_installed("jax", frameworks.version("jax"))
    yield from variables.check(environment)
    status, what = _outcome(started["driver"])
    yield "CUDA driver", status, what
    yield "Selftest", *_selftest()
    for name, title in (("tensorflow", "TensorFlow"), ("jax", "JAX")):
        yield f"{title} on Thimble", *_live(name, started.get(name), environment)


# --- The installation -----------------------------------------------------------------------------


def installation():
    site = os.path.dirname(os.path.dirname(os.path.abspath(thimble_gpu.__file__)))
    missing = [file for file in ESSENTIAL if not os.path.exists(os.path.join(site, file))]
    if missing:
        yield "Thimble", WRONG, f"{', '.join(missing)} missing in {site}: install thimble-gpu again"
    else:
        yield "Thimble", OK, f"{__version__}, complete in {site}"
    for file in SINGLE:
        copies = sorted({path for path in _copies(file) if os.path.realpath(path) !=
                         os.path.realpath(os.path.join(site, file))})
        if copies:
            yield "Thimble", WRONG, f"installed more than once: remove {', '.join(copies)}"


def _copies(file):
    for folder in sys.path:
        path = os.path.join(folder or ".", file)
        if os.path.exists(path):
            yield path
    named = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "")
    if os.path.basename(named) == os.path.basename(file):
        yield named


def _selftest():
    """When `thimble selftest` ran last on this machine, and with which result."""
    try:
        found = record.read()
    except record.Unusable as problem:
        return (WRONG if os.path.exists(record.default_path()) else ABSENT), str(problem)
    gpus = ", ".join(gpu["name"] for gpu in found["gpus"])
    what = f"{found['made']} on {gpus}, driver {found['driver']}: {record.summary(found)}"
    if found["simulated"]:
        what += "; on the simulated GPU, where nothing is computed"
    if record.count(found)["broken"]:
        return WRONG, f"{what}: attach {record.default_path()} to an issue"
    return OK, what


# --- The frameworks -------------------------------------------------------------------------------


def _problem(name):
    if name == "driver":
        return ""
    return frameworks.tensorflow_problem() if name == "tensorflow" else frameworks.jax_problem()


def _installed(name, version):
    problem = _problem(name)
    if version is None:
        return ABSENT, problem
    return (WRONG, problem) if problem else (OK, f"{version}, supported")


def _start(name, environment):
    """Starts a probe of Thimble with the user's variables, with Thimble turned on."""
    tried = dict(environment)
    if name in conf.VARIABLES and not variables.is_on(environment, name):
        tried[conf.VARIABLES[name]] = "thimble"
        if variables.wants_cpu(environment):
            tried.pop(variables.CONF)  # applies to TensorFlow only
    tried.update({"TF_CPP_MIN_LOG_LEVEL": "1"})
    return subprocess.Popen(
        [sys.executable, "-m", "thimble_gpu.probe", name], env=tried, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _outcome(child):
    try:
        out, errors = child.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return WRONG, f"no answer within {MOST_SECONDS} seconds"
    if child.returncode == 0:
        return OK, out.strip().splitlines()[-1]
    reasons = [first or second for first, second in REASON.findall(errors)]
    last = errors.strip().splitlines()[-1:] or [f"the attempt {text.how_ended(child.returncode)}"]
    return WRONG, "; ".join(dict.fromkeys(last + reasons))


def _live(name, child, environment):
    if child is None:
        problem = _problem(name)
        return (ABSENT if "not installed" in problem else WRONG), problem
    status, what = _outcome(child)
    if status != OK or variables.is_on(environment, name):
        return status, what
    return OFF, f"it works ({what}); to turn it on, set {conf.VARIABLES[name]}=thimble"
