"""The optimizer on the host: applied to variables as soon as their gradients are there.

Keras' optimizers apply all gradients at once, and advance their count of iterations. Here apply()
is called for some variables at a time, and the count is put back until the last. That is the same
where an update of one variable depends on its own gradient alone. Where it does not, every gradient
waits for the last one, and apply() is called once, as Keras does.
"""

import keras
import tensorflow as tf

from thimble_gpu.harmony import device

_EACH_ON_ITS_OWN = (keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.AdamW,
                    keras.optimizers.Adamax, keras.optimizers.Adagrad, keras.optimizers.Adadelta,
                    keras.optimizers.RMSprop, keras.optimizers.Lion, keras.optimizers.Lamb,
                    keras.optimizers.Ftrl, keras.optimizers.Adafactor)


def why_deferred(optimizer):
    """Why no variable is updated before all gradients are there; "" if that is not so."""
    if type(optimizer) not in _EACH_ON_ITS_OWN:
        return f"{type(optimizer).__name__} looks at all gradients at once, or may"
    for name in ("global_clipnorm", "use_ema", "gradient_accumulation_steps"):
        if getattr(optimizer, name):
            return f"{name} looks at all variables at once"
    return ""


class Update:
    """Sums gradients up and applies them. add() is called by one thread, the rest between steps."""

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
        """A step begins. `users` tells of each variable, by id, how many gradients will come."""
        self._sums = {}
        self._waiting = dict(users)

    def scale(self):
        """What the loss is multiplied by before gradients are computed (mixed precision)."""
        with tf.device(device.HOST):
            return tf.cast(self._optimizer.scale_loss(tf.ones([])), tf.float32)

    def add(self, variables, gradients):
        """Gradients of some variables have come: those that are complete are applied."""
        with tf.device(device.HOST):
            for variable, gradient in zip(variables, gradients):
                key = id(variable)
                old = self._sums.get(key)
                self._sums[key] = gradient if old is None else old + gradient
                self._waiting[key] -= 1
        if not self._deferred:
            self._apply([v for v in variables if self._waiting[id(v)] == 0], counts=False)

    def finish(self):
        """Every gradient has come."""
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
