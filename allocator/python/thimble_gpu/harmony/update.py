"""The optimizer on the host, applied to variables as soon as their gradients are complete.

Keras' optimizers apply all gradients at once and then count an iteration. Here apply() is called
for a few variables at a time, and the step counts one iteration. This gives the same result if the
update of a variable depends on its own gradient alone. Otherwise all gradients wait for the last
one, and apply() is called once, as in Keras.
"""

import keras
import tensorflow as tf

from thimble_gpu.harmony import device

_EACH_ON_ITS_OWN = (keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.AdamW,
                    keras.optimizers.Adamax, keras.optimizers.Adagrad, keras.optimizers.Adadelta,
                    keras.optimizers.RMSprop, keras.optimizers.Lion, keras.optimizers.Lamb,
                    keras.optimizers.Ftrl, keras.optimizers.Adafactor)


def why_deferred(optimizer):
    """Why all gradients must be complete before any update; "" if they need not."""
    if type(optimizer) not in _EACH_ON_ITS_OWN:
        return f"{type(optimizer).__name__} may use all gradients at once"
    for name in ("global_clipnorm", "use_ema", "gradient_accumulation_steps"):
        if getattr(optimizer, name):
            return f"{name} uses all variables at once"
    return ""


class Update:
    """Sums and applies gradients. One thread calls add(); the rest is called between steps."""

    def __init__(self, optimizer, variables):
        self._optimizer = optimizer
        self._variables = variables
        self._deferred = bool(why_deferred(optimizer))
        self._functions = {}
        self._sums = {}
        self._waiting = {}
        with tf.device(device.HOST):
            if not optimizer.built:
                optimizer.build(variables)

    def begin(self, users):
        """Begins a step. `users`: how many gradients will come, by id of the variable."""
        self._sums = {}
        self._waiting = dict(users)

    def scale(self):
        """The factor of the loss for mixed precision."""
        with tf.device(device.HOST):
            return tf.cast(self._optimizer.scale_loss(tf.ones([])), tf.float32)

    def add(self, variables, gradients):
        """Adds gradients of some variables and applies those that are complete."""
        with tf.device(device.HOST):
            for variable, gradient in zip(variables, gradients):
                key = id(variable)
                old = self._sums.get(key)
                self._sums[key] = gradient if old is None else old + gradient
                self._waiting[key] -= 1
        if not self._deferred:
            self._apply([v for v in variables if self._waiting[id(v)] == 0], counts=False)

    def finish(self):
        """Ends a step, when every gradient has come."""
        if self._deferred:
            self._apply([v for v in self._variables if id(v) in self._sums], counts=True)
        else:
            with tf.device(device.HOST):
                self._optimizer.iterations.assign_add(1)
        self._sums = {}

    def _apply(self, variables, counts):
        if not variables:
            return
        function = self._function_for(tuple(id(v) for v in variables), variables, counts)
        function([self._sums.pop(id(v)) for v in variables])

    def _function_for(self, key, variables, counts):
        if key not in self._functions:
            optimizer = self._optimizer

            def apply(gradients):
                with tf.device(device.HOST):
                    optimizer.apply(gradients, variables)
                    if not counts:
                        optimizer.iterations.assign_sub(1)

            specs = [tf.TensorSpec(v.shape, v.dtype) for v in variables]
            function = tf.function(apply, autograph=False, jit_compile=False)
            self._functions[key] = function.get_concrete_function(specs)
        return self._functions[key]
