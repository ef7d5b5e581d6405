"""Training as Keras does it, but for the gradients: summed up over portions of the batch."""

import tensorflow as tf


def losses(model, optimizer, loss, x, y, portions, steps):
    """Of every step; with the links' own losses, such as those of regularisers."""
    x, y = tf.constant(x), tf.constant(y)
    batch = len(x)
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, jit_compile=False)
    def step():
        sums, total, first = None, 0.0, 0
        for size in portions:
            span = slice(first, first + size)
            first += size
            with tf.GradientTape() as tape:
                value = loss(y[span], model(x[span], training=True))
                value += tf.add_n(model.losses) if model.losses else 0.0
                scaled = optimizer.scale_loss(value * (size / batch))
            gradients = [tf.convert_to_tensor(gradient) for gradient in
                         tape.gradient(scaled, model.trainable_variables)]
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
            total += value * (size / batch)
        optimizer.apply(sums, model.trainable_variables)
        return total

    return [float(step()) for _ in range(steps)]
