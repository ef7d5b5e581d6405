"""Trains JAX models on the first GPU and records its memory."""

import functools
import os
import time

import jax
import jax.numpy as jnp
import program


class Usage(program.Steps):
    """Figures of the device after every step; None if the allocator has none."""

    def settled(self):
        """The bytes in use once they are stable: threads free buffers a little after their last
        use, and may be late on a busy machine. So a figure well above all earlier ones is checked
        for longer."""
        before, now = None, self.now
        for _ in range(50):
            if now == before and not self._is_new(now):
                break
            time.sleep(0.02)
            before, now = now, self.now
        return now

    def _is_new(self, now):
        return now is not None and self.after_step and now > 1.1 * max(self.after_step)

    def _statistic(self, name):
        return (jax.local_devices()[0].memory_stats() or {}).get(name)

    @property
    def now(self):
        return self._statistic("bytes_in_use")

    @property
    def peak(self):
        return self._statistic("peak_bytes_in_use")

    @property
    def allocator(self):
        return os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default")


def adam(parameters, gradients, state, rate=1e-3):
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradients)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state[1], gradients)
    updated = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8),
                           parameters, mean, square)
    return updated, (mean, square)


def new_state(parameters):
    return tuple(jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))


def cross_entropy(logits, targets):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -chosen.mean()


def make_step(loss, donate=False):
    """One step of training as one program; donated parameters are updated where they lie."""
    @functools.partial(jax.jit, donate_argnums=(0, 1) if donate else ())
    def step(parameters, state, *batch):
        gradients = jax.grad(loss)(parameters, *batch)
        return adam(parameters, gradients, state)
    return step


def train(workload, loss, parameters, batches, donate=False, **more):
    """Trains on every batch of a list once."""
    usage = Usage()
    step = make_step(loss, donate)
    state = new_state(parameters)
    for batch in batches:
        parameters, state = step(parameters, state, *batch)
        jax.block_until_ready(parameters)
        usage.note()
    program.report(workload, usage, **more)
