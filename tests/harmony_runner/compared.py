"""Trains a model by Harmony, pack by pack, and then as Keras does on the same portions."""

import functools

import keras
import numpy as np

from thimble_gpu import harmony

from tests.harmony_runner import plain

ROUNDING = 1e-6  # a little more than float32 has


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
    optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    for variable, value in zip(model.variables, before):
        variable.assign(value)
    theirs = _all_numbers(model, x, y, lambda: plain.losses(
        model, optimizer, x, y, [portion] * (batch // portion), steps))
    return {"losses": ours["loss"], "packs": packs,
            "loss": max(map(difference, ours["loss"], theirs["loss"])),
            "evaluate": max(map(difference, ours["evaluate"], theirs["evaluate"])),
            "weights": difference_of_variables(ours["variables"], theirs["variables"]),
            "links": [link.name for link in attached.chain.links],
            "regroups": attached.chain.can_regroup}


def _all_numbers(model, x, y, train_steps):
    """What comes out of evaluate(), of training and of evaluate() again, and what is left."""
    evaluate = functools.partial(model.evaluate, x, y, verbose=0,
                                 batch_size=len(keras.tree.flatten(x)[0]))
    before, losses, after = evaluate(), train_steps(), evaluate()
    return {"evaluate": np.ravel([before, after]), "loss": losses,
            "variables": [variable.numpy() for variable in model.variables]}


def difference(ours, theirs):
    """As a part of the number itself. What is not a number is never the same."""
    if not (np.isfinite(ours) and np.isfinite(theirs)):
        return float("inf")
    return 0.0 if ours == theirs else float(abs(ours - theirs) / abs(theirs))


def difference_of_variables(ours, theirs):
    """The largest, each as a part of the largest number in its variable.

    A variable all of whose numbers are below ROUNDING of the largest in the model is what rounding
    left of a gradient that is zero, such as that of a bias before BatchNorm: it is another one in
    any order of summing up. It is compared with that largest number instead.
    """
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs)]
    numbers = [(a.astype(np.float64), b.astype(np.float64)) for a, b in pairs
               if np.issubdtype(b.dtype, np.floating) and b.size]
    if not all(np.array_equal(a, b) for a, b in pairs if not np.issubdtype(b.dtype, np.floating)):
        return float("inf")
    if not all(np.isfinite(a).all() and np.isfinite(b).all() for a, b in numbers):
        return float("inf")
    sizes = [np.max(np.abs(b)) for _, b in numbers]
    return max(float(np.max(np.abs(a - b))) / (size if size > ROUNDING * max(sizes) else max(sizes))
               for (a, b), size in zip(numbers, sizes))
