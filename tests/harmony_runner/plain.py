"""Training as in Keras, except that gradients are summed over the microbatches of a batch."""

import tensorflow as tf


def losses(model, optimizer, x, y, microbatches, steps):
    """The losses of all steps of a compiled model, including those that layers add."""
    data = tf.nest.map_structure(
        lambda each: None if each is None else tf.convert_to_tensor(each), (x, y))
    batch = sum(microbatches)
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False, jit_compile=False)
    def step():
        sums, total, first = None, 0.0, 0
        for size in microbatches:
            span = slice(first, first + size)
            own_x, own_y = tf.nest.map_structure(
                lambda each, span=span: None if each is None else each[span], data)
            first += size
            with tf.GradientTape() as tape:
                value = model.compute_loss(own_x, own_y, model(own_x, training=True))
                scaled = optimizer.scale_loss(value * (size / batch))
            gradients = [None if gradient is None else tf.convert_to_tensor(gradient)
                         for gradient in tape.gradient(scaled, model.trainable_variables)]
            sums = gradients if sums is None else [
                None if a is None else a + b for a, b in zip(sums, gradients)]
            total += value * (size / batch)
        optimizer.apply(sums, model.trainable_variables)
        return total

    return [float(step()) for _ in range(steps)]
