"""A device that computes packs: its streams, copies to and from it, and its memory."""

import queue
import threading
import traceback

import tensorflow as tf

from thimble_gpu import arenas
from thimble_gpu.harmony import checks

HOST = "/CPU:0"


class Future:
    """The result of a job, when it is done. take() returns it and drops it, to free memory."""

    def __init__(self):
        self._done = threading.Event()
        self._value = self._error = self._trace = None

    def set(self, value):
        self._value = value
        self._done.set()

    def fail(self, error, trace):
        self._error, self._trace = error, trace
        self._done.set()

    def wait(self):
        self._done.wait()
        if self._error is not None:
            raise _Failed(self._error, self._trace)

    def peek(self):
        self.wait()
        return self._value

    def take(self):
        self.wait()
        value, self._value = self._value, None
        return value


class _Failed(Exception):
    """A job cannot go on because an earlier one failed with this error and traceback."""

    def __init__(self, error, trace):
        super().__init__(error)
        self.error, self.trace = error, trace


def wait_for_all(futures):
    """Waits until all have ended, then raises the first error, if any."""
    first = None
    for future in futures:
        try:
            future.wait()
        except _Failed as failed:
            first = first or failed
    if first is not None:
        raise first.error.with_traceback(first.trace)


class Stream:
    """Runs jobs one after the other, in its own thread.

    A job may wait only for futures of jobs that were submitted before it, to any stream: so the
    oldest unfinished job can always go on.
    """

    def __init__(self, name):
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"harmony {name}", daemon=True).start()

    def submit(self, function, *arguments):
        future = Future()
        self._jobs.put((future, function, arguments))
        return future

    def close(self):
        self._jobs.put(None)

    def _work(self):
        while True:
            job = self._jobs.get()
            if job is None:
                return
            future, function, arguments = job
            try:
                future.set(function(*arguments))
            except _Failed as failed:
                future.fail(failed.error, failed.trace)
            except BaseException as error:  # pylint: disable=broad-except
                traceback.clear_frames(error.__traceback__)  # frames hold tensors
                future.fail(error, error.__traceback__)
            del job, future, function, arguments  # these would hold tensors until the next job


class Device:
    """One of TensorFlow's logical devices, "CPU:1" or "GPU:0"."""

    def __init__(self, name):
        self.name = name
        self.is_gpu = name.startswith("GPU")
        self._arena_name = int(name.partition(":")[2]) if self.is_gpu else name.lower()
        self._arena = self._first_limit = None
        self.inward = Stream(f"to {name}")
        self.compute = Stream(name)
        self.outward = Stream(f"from {name}")

    def close(self):
        self.set_limit(None)
        for stream in (self.inward, self.compute, self.outward):
            stream.close()

    def usable(self, limit):
        """The usable part of a limit: memory comes in chunks, some of them not full."""
        if self.arena is None:
            return limit
        return limit - 2 * checks.size(self.arena.options()["chunk"])

    def set_limit(self, limit):
        """Limits the bytes taken from now on; None restores the limit before the first call."""
        if self.arena is None:
            return
        if self._first_limit is None:
            self._first_limit = self.arena.stats()["limit"]
        self.arena.set_limit(self._first_limit if limit is None else min(limit, self._first_limit))

    @property
    def arena(self):
        """Thimble's arena of this device; None if Thimble does not serve it."""
        if self._arena is None:
            with tf.device(self.name):
                tf.zeros([1])  # TensorFlow creates a device when it first computes there
            try:
                self._arena = arenas.find(self._arena_name, "tensorflow")
            except arenas.NotActive:
                pass
        return self._arena

    def bytes_in_use(self):
        return self.arena.stats()["in_use"] if self.arena else 0

    def peak_bytes(self):
        return self.arena.stats()["peak_in_use"] if self.arena else 0

    def reset_peak(self):
        if self.arena:
            self.arena.reset_peak()

    def wait(self):
        """Waits until a GPU has computed everything that was submitted."""
        if self.is_gpu:
            tf.test.experimental.sync_devices()

    def bring(self, tensor):
        """Copies a tensor from the host or another device into this device's memory."""
        if self.is_gpu:
            # TensorFlow keeps a copy on a device as long as its source tensor lives. So the source
            # is a second tensor with the same bytes.
            with tf.device(tensor.backing_device if isinstance(tensor, tf.Tensor) else HOST):
                tensor = tf.identity(tensor)
            with tf.device(self.name):
                return tf.identity(tensor)
        with tf.device(self.name):
            # Logical CPU devices share memory: TensorFlow would not copy.
            return tf.raw_ops.DeepCopy(x=tensor)

    def bring_maybe(self, tensor):
        return None if tensor is None else self.bring(tensor)

    def take_away(self, tensor):
        """Copies a tensor of this device to the host's memory; from a GPU to pinned memory, as long
        as TensorFlow has some."""
        if self.is_gpu:
            try:
                with tf.device(self.name):
                    return _to_host(tensor)
            except tf.errors.ResourceExhaustedError:
                with tf.device(HOST):
                    return tf.identity(tensor)
        with tf.device(HOST):
            return tf.raw_ops.DeepCopy(x=tensor)

    def take_away_maybe(self, tensor):
        return None if tensor is None else self.take_away(tensor)


@tf.function(autograph=False, jit_compile=False, reduce_retracing=True)
def _to_host(tensor):
    """A function receives tensors from a GPU in pinned memory; eager ops do not."""
    with tf.device(HOST):
        return tf.identity(tensor)


def size_of(tensors):
    """Bytes as an arena counts them, with each block rounded up to 256."""
    return sum(-(-tensor.dtype.size * tensor.shape.num_elements() // 256) * 256
               for tensor in tensors if isinstance(tensor, tf.Tensor))
