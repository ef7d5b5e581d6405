"""TensorFlow and Keras on the CPU device: stock, and on Thimble in every mode, bit for bit."""

import functools
import os

from tests.programs import generate
from tests.programs.prelude import LIMIT
from tests.programs.verdict import DONE
from tests.programs.verdict import RAN_OUT
from tests.programs.verdict import SAME
from tests.programs.verdict import UNSTEADY
from tests.programs.verdict import UNUSABLE
from tests.programs.verdict import Verdict

FEATURES = generate.FEATURES
WAITING = generate.WAITING
SMALLEST = 1 << 20  # bytes: the lowest limit
CONF = "device:cpu,retry_ms:100,"
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"

# {all}: LIMIT, which is never reached. {part}: a part of the program's own peak.
MODES = {
    "plain": "limit:{all}",
    "plan": "limit:{all},plan:auto",
    "swap": "limit:{part},swap:auto",
    "goal": "limit:{all},swap:auto,swap_limit:{part}",
    "bfc": "limit:{all},front:bfc",
    "tight": "limit:{part},chunk:64KiB",
}
PART = 0.6


program = generate.generated
source = generate.source


def prepare(features):
    """oneDNN's kernels are TensorFlow's default; here a program must ask for them."""
    os.environ[ONEDNN] = "1" if "onednn" in features else "0"


def compared(stock, ours, may_run_out):
    """Returns how a run differs from stock, as kind and detail."""
    if (ours.lines, ours.end) == (stock.lines, stock.end):
        return SAME, ""
    if may_run_out and ours.end == RAN_OUT and ours.lines == stock.lines[:len(ours.lines)]:
        return RAN_OUT, ""
    for index, (right, wrong) in enumerate(zip(stock.lines, ours.lines)):
        if right != wrong:
            return "differs", f"line {index + 1} is '{wrong}' and stock's is '{right}'"
    return "ended otherwise", f"{ours.end}, after {len(ours.lines)} of {len(stock.lines)} lines"


def judged(text, modes):
    """Returns a verdict for every mode; only one for stock if the program proves nothing."""
    from tests.programs import tensorflow_run  # takes seconds, and only workers need it
    run = functools.partial(tensorflow_run.run, text)
    run_on = functools.cache(run)  # the peak is that of `plain`
    stock = run(None)
    if stock.end != DONE:
        return [Verdict("stock", UNUSABLE, stock.end, stock.log)]
    verdicts = []
    for mode in modes:
        part = 0
        if "{part}" in MODES[mode]:
            peak = run_on(CONF + MODES["plain"].format(all=LIMIT)).more or 0
            part = max(SMALLEST, int(PART * peak))
        conf = CONF + MODES[mode].format(all=LIMIT, part=part)
        ours = run_on(conf)
        kind, detail = compared(stock, ours, may_run_out="limit:{all}" not in MODES[mode])
        if kind not in (SAME, RAN_OUT):
            again = run(None)
            if (again.lines, again.end) != (stock.lines, stock.end):
                return [Verdict("stock", UNSTEADY, "two runs of stock TensorFlow differ")]
            detail += f" ({ONEDNN}={os.environ.get(ONEDNN, 1)} THIMBLE_CONF={conf})"
        verdicts.append(Verdict(mode, kind, detail, ours.log))
    return verdicts
