"""Trains a model by Harmony, pack by pack, and then as Keras does on the same portions."""

import functools

import keras
import numpy as np

from thimble_gpu import harmony

from tests.harmony_runner import plain

LIMIT = 1e-6  # of relative differences: a few roundings of float32
A_FEW = 4


class Losses(keras.callbacks.Callback):
    """Of every step, while there is one step in an epoch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(float(logs["loss"]))


def plan_of(count, batch, portion, packs=3, mode="pp"):
    """Packs of about as many of `count` links each, on two devices in turn; or, in dp, on both."""
    borders = sorted({count * i // packs for i in range(packs + 1)})
    spans = [(first, last - 1) for first, last in zip(borders, borders[1:])]
    share = batch if mode == "pp" else batch // 2
    portions = (portion,) * (share // portion)
    gpu = (lambda number: number % 2) if mode == "pp" else (lambda number: -1)
    forward = [harmony.Task(*span, gpu(i), portions) for i, span in enumerate(spans[:-1])]
    backward = [harmony.Task(*span, gpu(i + len(forward)), portions)
                for i, span in enumerate(reversed(spans))]
    return harmony.Plan(mode, 2, batch, tuple(forward), tuple(backward))


def train(model, x, y, devices, portion, memory, steps=3, plan=True):
    """Largest relative differences of losses, of evaluate() before and after, and of variables.

    Both sides do the same from the same variables, seeds of random numbers included: evaluate(),
    so many steps, evaluate(). `plan`: whether packs are made by count; otherwise Harmony plans.
    """
    batch = len(keras.tree.flatten(x)[0])
    before = [variable.numpy() for variable in model.variables]
    attached = harmony.attach(model, devices=devices, memory=memory, mode="pp", portion=portion)
    if plan:
        attached.plan = plan_of(len(attached.chain.links), batch, portion)

    def by_harmony():
        seen = Losses()
        model.fit(x, y, batch_size=batch, epochs=steps, shuffle=False, verbose=0, callbacks=[seen])
        return seen.seen

    ours = _all_numbers(model, x, y, by_harmony)
    packs = sum(" portions of " in line and "backward" in line
                for line in attached.explain().splitlines())
    attached.detach()

    def by_keras(values):
        optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
        for variable, value in zip(model.variables, values):
            variable.assign(value)
        return _all_numbers(model, x, y, lambda: plain.losses(
            model, optimizer, x, y, [portion] * (batch // portion), steps))

    theirs = by_keras(before)
    differences = _differences(ours, theirs)
    if max(differences.values()) > LIMIT:
        moved = by_keras([_nudged(value) for value in before])
        differences = _differences(ours, theirs, moved)
    return {"losses": ours["loss"], "packs": packs, **differences,
            "links": [link.name for link in attached.chain.links],
            "regroups": attached.chain.can_regroup, "has_state": bool(attached.chain.changing)}


def _all_numbers(model, x, y, train_steps):
    """What comes out of evaluate(), of training and of evaluate() again, and what is left."""
    evaluate = functools.partial(model.evaluate, x, y, verbose=0,
                                 batch_size=len(keras.tree.flatten(x)[0]))
    before, losses, after = evaluate(), train_steps(), evaluate()
    return {"evaluate": np.ravel([before, after]), "loss": losses,
            "weights": [variable.numpy() for variable in model.variables]}


def _nudged(value):
    """The next larger numbers there are."""
    is_float = np.issubdtype(value.dtype, np.floating)
    return np.nextafter(value, np.inf, dtype=value.dtype) if is_float else value


def _differences(ours, theirs, moved=None):
    """The largest of each kind of number, as a part of it; of a variable, of its largest number.

    `moved`: what Keras itself makes of variables that are one rounding away. A number may differ by
    a few such moves where they are more than LIMIT, such as a bias before BatchNorm, whose gradient
    is zero but for rounding. Whole numbers must be the same.
    """
    return {kind: max(map(_part, ours[kind], theirs[kind], (moved or theirs)[kind]), default=0.0)
            for kind in ("loss", "evaluate", "weights")}


def _part(ours, theirs, moved):
    """What is not a number is never the same."""
    if not np.issubdtype(np.asarray(theirs).dtype, np.floating):
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    ours, theirs, moved = (np.asarray(each, np.float64) for each in (ours, theirs, moved))
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf")
    if np.array_equal(ours, theirs):
        return 0.0
    size, move = np.max(np.abs(theirs)), np.max(np.abs(theirs - moved))
    return float(np.max(np.abs(ours - theirs)) / max(size, A_FEW * move / LIMIT))
