"""Trains a model by Harmony, pack by pack, and then as Keras does on the same portions."""

import functools

import keras
import numpy as np

from thimble_gpu import harmony

from tests.harmony_runner import plain


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

    `plan`: whether packs are made by count; otherwise Harmony plans.
    """
    batch = len(keras.tree.flatten(x)[0])
    before = [variable.numpy() for variable in model.variables]
    attached = harmony.attach(model, devices=devices, memory=memory, mode="pp", portion=portion)
    if plan:
        attached.plan = plan_of(len(attached.chain.links), batch, portion)
    evaluate = functools.partial(model.evaluate, x, y, batch_size=batch, verbose=0)
    seen, tested = Losses(), [evaluate()]
    model.fit(x, y, batch_size=batch, epochs=steps, shuffle=False, verbose=0, callbacks=[seen])
    ours = [variable.numpy() for variable in model.variables]
    tested.append(evaluate())
    packs = sum(" portions of " in line and "backward" in line
                for line in attached.explain().splitlines())
    attached.detach()
    expected_tests = [evaluate()]
    optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    for variable, value in zip(model.variables, before):
        variable.assign(value)
    expected_tests.insert(0, evaluate())
    expected = plain.losses(model, optimizer, x, y, [portion] * (batch // portion), steps)
    theirs = [variable.numpy() for variable in model.variables]
    return {"losses": seen.seen, "packs": packs,
            "loss": max(map(difference, seen.seen, expected)),
            "evaluate": max(map(difference, tested, expected_tests)),
            "weights": max(map(difference, ours, theirs)),
            "links": [link.name for link in attached.chain.links],
            "regroups": attached.chain.can_regroup}


def difference(ours, theirs):
    """The largest, as a part of the largest number, or of 0.1: what nothing but rounding moves,
    such as a bias before BatchNorm, stays about as small as that rounding."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if not ours.size:
        return 0.0
    if not np.issubdtype(theirs.dtype, np.number):
        return float(np.any(ours != theirs))
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if np.array_equal(ours, theirs, equal_nan=True):
        return 0.0
    return float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 0.1))
