"""Trains Keras models on the first GPU and records its memory."""

import numpy as np
import program
import tensorflow as tf
import keras

DEVICE = "GPU:0"


class Usage(program.Steps, keras.callbacks.Callback):
    """Figures of the device after every training step."""

    def on_train_batch_end(self, batch, logs=None):
        self.note()

    @property
    def now(self):
        return tf.config.experimental.get_memory_info(DEVICE)["current"]

    @property
    def peak(self):
        return tf.config.experimental.get_memory_info(DEVICE)["peak"]

    @property
    def allocator(self):
        """Returns the name of the allocator that served an op, from the runtime's own record."""
        v1 = tf.compat.v1
        with tf.Graph().as_default(), tf.device(DEVICE), v1.Session() as session:
            trace = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
            metadata = v1.RunMetadata()
            session.run(tf.random.uniform([1024]), options=trace, run_metadata=metadata)
        names = {memory.allocator_name for device in metadata.step_stats.dev_stats
                 if device.device.endswith(DEVICE)
                 for node in device.node_stats for memory in node.memory}
        return "+".join(sorted(names)) or None


def parser(description, **defaults):
    options = program.parser(description, **defaults)
    options.add_argument("--jit", choices=("on", "off"), default="off",
                         help="compile the step with XLA (default: off)")
    return options


def images(options, classes=1000):
    """One batch of pictures and labels."""
    side = options.size
    pictures = np.random.default_rng(0).random((options.batch, side, side, 3), np.float32)
    return pictures, np.arange(options.batch) % classes


def tokens(options, length, vocabulary):
    """One batch of sentences, which are also the words to predict."""
    words = np.random.default_rng(length).integers(0, vocabulary, (options.batch, length), np.int32)
    return words, words


def repeat(batch, steps):
    return tf.data.Dataset.from_tensors(batch).repeat(steps)


def compile_classifier(model, options, optimizer="adam", from_logits=True):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model.compile(optimizer, loss, jit_compile=options.jit == "on")
    return model


def train(workload, model, batch, options):
    """Trains a compiled model on the same batch again and again."""
    usage = Usage()
    model.fit(repeat(batch, options.steps), shuffle=False, verbose=0, callbacks=[usage])
    program.report(workload, usage, jit=options.jit, parameters=model.count_params())
