"""JAX on the simulated GPU: status, order of requests and illegal calls, stock and on Thimble."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.frameworks import installation
from tests.programs import jax_generate
from tests.programs.verdict import DONE
from tests.programs.verdict import SAME
from tests.programs.verdict import UNSTEADY
from tests.programs.verdict import UNUSABLE
from tests.programs.verdict import Verdict

FEATURES = jax_generate.FEATURES
WAITING = jax_generate.WAITING
MODES = {"plain": "", "plan": "plan:auto", "small": "chunk:64KiB", "apart": "stitch:off"}
ROOT = pathlib.Path(os.path.abspath(__file__)).parents[2]
SIMULATOR = ROOT / "tests" / "simgpu" / "run"
SITE = "THIMBLE_FUZZ_SITE"  # where workers find the boot module

program = jax_generate.generated
source = jax_generate.source


def prepare(_):
    """Restarts this process on the simulated GPU, because the loader reads its variables only at
    the start."""
    if SITE in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        with contextlib.chdir(ROOT):
            installation.install_for_jax(site)
        os.environ.update({SITE: str(site), "SIMGPU_PYTHON": sys.executable,
                           "JAX_PLATFORMS": "cuda"})
        sys.exit(subprocess.call([SIMULATOR, "--", sys.executable, *sys.argv]))


def seen(outcome, has_threads):
    """Returns what two runs must have in common."""
    requests, illegal = outcome.more or ([], "")
    return outcome.lines, outcome.end, sorted(requests) if has_threads else requests, illegal


def difference(stock, ours):
    for index, (right, wrong) in enumerate(zip(stock[0], ours[0])):
        if right != wrong:
            return f"line {index + 1} is '{wrong}' and stock's is '{right}'"
    if stock[:2] != ours[:2]:
        return f"ended with {ours[1]} after {len(ours[0])} of {len(stock[0])} lines"
    if stock[2] != ours[2]:
        at = next((i for i, pair in enumerate(zip(stock[2], ours[2])) if pair[0] != pair[1]),
                  min(len(stock[2]), len(ours[2])))
        return (f"requests from {at + 1} on are {ours[2][at:at + 3]} and stock's are "
                f"{stock[2][at:at + 3]}, of {len(ours[2])} and {len(stock[2])}")
    return f"illegal calls: {ours[3]}"


def judged(text, modes):
    """Returns a verdict for every mode; only one for stock if the program proves nothing."""
    from tests.programs import jax_run  # takes seconds, and only workers need it
    site, has_threads = os.environ[SITE], "together(*" in text
    run = lambda conf: jax_run.run(text, site, conf)
    first = run(None)
    stock = seen(first, has_threads)
    if first.end != DONE:
        return [Verdict("stock", UNUSABLE, first.end, first.log)]
    verdicts = []
    for mode in modes:
        outcome = run(MODES[mode])
        ours = seen(outcome, has_threads)
        if ours == stock:
            verdicts.append(Verdict(mode, SAME))
        elif seen(run(None), has_threads) != stock:
            return [Verdict("stock", UNSTEADY, "two runs of stock JAX differ")]
        else:
            verdicts.append(Verdict(mode, "differs", difference(stock, ours), outcome.log))
    return verdicts
