"""Trains a model with Harmony, pack by pack, and then as Keras does on the same microbatches."""

import functools

import keras
import numpy as np

from thimble_gpu import harmony

from tests.harmony_runner import plain

LIMIT = 1e-6  # of relative differences: a few roundings of float32
A_FEW = 4

# Of each device, where numbers are compared and not memory: the workspace of a convolution's
# gradient depends on the processor's cache. 26 MB were seen for a tiny one.
MEMORY = "64MiB"


class Losses(keras.callbacks.Callback):
    """Collects the loss of every step, with one step per epoch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(float(logs["loss"]))


def plan_of(count, batch, microbatch, packs=3, mode="pp"):
    """Packs of about equal numbers of stages, on two devices alternately; in dp, on both."""
    borders = sorted({count * i // packs for i in range(packs + 1)})
    spans = [(first, last - 1) for first, last in zip(borders, borders[1:])]
    share = batch if mode == "pp" else batch // 2
    microbatches = (microbatch,) * (share // microbatch)
    gpu = (lambda number: number % 2) if mode == "pp" else (lambda number: -1)
    forward = [harmony.Task(*span, gpu(i), microbatches) for i, span in enumerate(spans[:-1])]
    backward = [harmony.Task(*span, gpu(i + len(forward)), microbatches)
                for i, span in enumerate(reversed(spans))]
    return harmony.Plan(mode, 2, batch, tuple(forward), tuple(backward))


def train(model, x, y, devices, microbatch, memory=MEMORY, steps=3, plan=True):
    """Largest relative differences of losses, of evaluate() before and after, and of variables.

    Both sides begin with the same variables, including seeds, and do the same: evaluate(), `steps`
    steps, evaluate(). `plan`: use packs of equal counts; otherwise Harmony plans.
    """
    batch = len(keras.tree.flatten(x)[0])
    before = [variable.numpy() for variable in model.variables]
    attached = harmony.attach(model, devices=devices, memory=memory, mode="pp", portion=microbatch)
    if plan:
        attached.plan = plan_of(len(attached.chain.stages), batch, microbatch)

    def by_harmony():
        seen = Losses()
        model.fit(x, y, batch_size=batch, epochs=steps, shuffle=False, verbose=0, callbacks=[seen])
        return seen.seen

    ours = _all_numbers(model, x, y, by_harmony)
    packs = sum(" microbatches of " in line and "backward" in line
                for line in attached.explain().splitlines())
    attached.detach()

    def by_keras(values):
        optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
        for variable, value in zip(model.variables, values):
            variable.assign(value)
        return _all_numbers(model, x, y, lambda: plain.losses(
            model, optimizer, x, y, [microbatch] * (batch // microbatch), steps))

    theirs = by_keras(before)
    differences = _differences(ours, theirs)
    if max(differences.values()) > LIMIT:
        moved = by_keras([_nudged(value) for value in before])
        differences = _differences(ours, theirs, moved)
    return {"losses": ours["loss"], "packs": packs, **differences,
            "stages": [stage.name for stage in attached.chain.stages],
            "regroups": attached.chain.can_regroup, "has_state": bool(attached.chain.changing)}


def _all_numbers(model, x, y, train_steps):
    """The results of evaluate(), of training and of evaluate() again, and the variables."""
    evaluate = functools.partial(model.evaluate, x, y, verbose=0,
                                 batch_size=len(keras.tree.flatten(x)[0]))
    before, losses, after = evaluate(), train_steps(), evaluate()
    return {"evaluate": np.ravel([before, after]), "loss": losses,
            "weights": [variable.numpy() for variable in model.variables]}


def _nudged(value):
    """The next larger floating-point numbers."""
    is_float = np.issubdtype(value.dtype, np.floating)
    return np.nextafter(value, np.inf, dtype=value.dtype) if is_float else value


def _differences(ours, theirs, moved=None):
    """The largest relative difference of each kind; of a variable, relative to its maximum.

    `moved`: Keras' own results from variables that differ by one rounding. A number may differ by a
    few such moves where they exceed LIMIT, such as a bias before BatchNorm, whose gradient is zero
    except for rounding. Whole numbers must be equal.
    """
    return {kind: max(map(_part, ours[kind], theirs[kind], (moved or theirs)[kind]), default=0.0)
            for kind in ("loss", "evaluate", "weights")}


def _part(ours, theirs, moved):
    """NaN never equals anything."""
    if not np.issubdtype(np.asarray(theirs).dtype, np.floating):
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    ours, theirs, moved = (np.asarray(each, np.float64) for each in (ours, theirs, moved))
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    if np.array_equal(ours, theirs):
        return 0.0
    size, move = np.max(np.abs(theirs)), np.max(np.abs(theirs - moved))
    return float(np.max(np.abs(ours - theirs)) / max(size, A_FEW * move / LIMIT))
