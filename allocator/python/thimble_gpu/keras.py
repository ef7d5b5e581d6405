"""Records how much memory Keras training uses, per epoch.

    from thimble_gpu.keras import MemoryCallback
    model.fit(x, y, callbacks=[MemoryCallback()])
"""

import keras

from thimble_gpu import arenas
from thimble_gpu import peaks


class MemoryCallback(keras.callbacks.Callback):
    """Adds figures in bytes to the logs of every epoch, and so to the history: memory_peak (the
    most in use during the epoch), and memory_in_use, memory_reserved and memory_swapped (at its
    end).

    `device` is as in thimble_gpu; by default, TensorFlow's CPU device if Thimble serves it,
    otherwise GPU 0. With `log_dir`, the figures are also written as scalars for TensorBoard.
    """

    def __init__(self, device=None, log_dir=None):
        super().__init__()
        self._device = device
        self._log_dir = log_dir
        self._writer = None
        self._peak = None

    def on_train_begin(self, logs=None):
        if self._device is None:
            self._device = arenas.first_device()
        if self._log_dir is not None:
            import tensorflow as tf  # pylint: disable=import-outside-toplevel
            self._writer = tf.summary.create_file_writer(self._log_dir)

    def on_epoch_begin(self, epoch, logs=None):
        self._end_peak()  # of an epoch that did not finish
        self._peak = peaks.Peak(self._device, self._framework())
        self._peak.__enter__()

    def on_epoch_end(self, epoch, logs=None):
        stats = arenas.find(self._device, self._framework()).stats()
        figures = {"memory_peak": self._peak.bytes, "memory_in_use": stats["in_use"],
                   "memory_reserved": stats["reserved"], "memory_swapped": stats["swapped"]}
        self._end_peak()
        if logs is not None:
            logs.update(figures)
        if self._writer is not None:
            self._write(epoch, figures)

    def on_train_end(self, logs=None):
        self._end_peak()
        if self._writer is not None:
            self._writer.close()

    def _end_peak(self):
        if self._peak is not None:
            self._peak.__exit__()
            self._peak = None

    def _framework(self):
        """Keras may compute with JAX while TensorFlow reads the data."""
        return keras.backend.backend() if keras.backend.backend() in arenas.FRAMEWORKS else None

    def _write(self, epoch, figures):
        # tf.summary.scalar() needs TensorBoard, which may not be installed where the model trains.
        # pylint: disable=import-outside-toplevel
        import tensorflow as tf
        from tensorflow.core.framework import summary_pb2
        metadata = summary_pb2.SummaryMetadata(data_class=summary_pb2.DATA_CLASS_SCALAR)
        metadata.plugin_data.plugin_name = "scalars"
        with self._writer.as_default():
            for name, value in figures.items():
                tf.summary.write(name.replace("_", "/", 1), tf.constant(value, tf.float32),
                                 step=epoch, metadata=metadata)
