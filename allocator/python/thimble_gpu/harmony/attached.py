"""Harmony for an ordinary Keras model: attach(), then fit(), evaluate() and predict() as usual."""

import keras
import tensorflow as tf

from thimble_gpu.harmony import checks
from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import links
from thimble_gpu.harmony import planner
from thimble_gpu.harmony import profiler
from thimble_gpu.harmony.chain import Chain
from thimble_gpu.harmony.errors import HarmonyError
from thimble_gpu.harmony.explain import explain
from thimble_gpu.harmony.step import size_of_batch


class Attached:
    """A model that Harmony trains. It plans when it sees the first batch."""

    def __init__(self, model, device_names, memory, mode, microbatch=None, plan=None,
                 topology=None):
        checks.check_model(model)
        self.model = model
        self.mode = mode
        self.microbatch = microbatch
        self.plan = plan
        self.links = links.find(device_names, topology)
        self._look_at_model()
        self.devices = [devices.Device(name) for name in device_names]
        self.limits = [_limit_of(device, memory) for device in self.devices]
        self._prepared = None

    def _look_at_model(self):
        self._state = self._state_of_model()
        self.chain = Chain(self.model)
        checks.check_training(self.model, self.chain.adds_loss)

    def _state_of_model(self):
        """What a chain and a plan depend on and people change: the optimizer and frozen layers."""
        layers = self.model._flatten_layers()  # pylint: disable=protected-access
        return (id(self.optimizer), [layer.trainable for layer in layers],
                [variable.trainable for variable in self.model.variables])

    # The planner reads these.
    @property
    def optimizer(self):
        return self.model.optimizer

    def loss(self, predictions, labels, weights):
        """The compiled loss of a microbatch. Packs compute the losses that layers add."""
        compiled = self.model._compile_loss  # pylint: disable=protected-access
        if compiled is None:
            return tf.zeros([])
        # With several outputs it also updates the means of single losses: not here.
        means = [(v, tf.zeros(v.shape, v.dtype)) for v in compiled.variables]
        with keras.StatelessScope(means):
            return compiled(labels, self.chain.structure(predictions), weights)

    def prepare(self, x, y, sample_weight=None):
        """Plans for batches like this one, once. Returns the Prepared of planner.py."""
        if self._state != self._state_of_model():
            self._forget()
            self._look_at_model()
        if self._prepared is None:
            self._prepared = planner.prepare(self, *self.tensors(x, y, sample_weight))
            for device, limit in zip(self.devices, self.limits):
                device.set_limit(limit)
                device.reset_peak()
        return self._prepared

    def tensors(self, x, y, sample_weight):
        """A batch as the chain needs it: a list of inputs, and labels; on the host."""
        compiled = self.model._compile_loss  # pylint: disable=protected-access
        if compiled is not None and not compiled.built:
            compiled.build(y, self.chain.structure(self.chain.graph.outputs))
        with tf.device(devices.HOST):
            return (self.chain.flatten(x),
                    tf.nest.map_structure(_to_tensor, (y, sample_weight)))

    def _forget(self):
        if self._prepared is not None:
            self._prepared.runner.close()
            self._prepared = None
        for device in self.devices:
            device.set_limit(None)

    # --- What Keras calls -----------------------------------------------------------------------

    def train_batch(self, data):
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        prepared = self.prepare(x, y, weights)
        inputs, labels = self.tensors(x, y, weights)
        with tf.device(devices.HOST):
            loss, predictions = prepared.runner.step(inputs, labels)
            compiled = self.model._compile_loss  # pylint: disable=protected-access
            if compiled is not None and compiled.metrics:
                self._compiled_loss(y, predictions, weights)
            return self._logs(x, y, predictions, weights, loss, size_of_batch(inputs))

    def test_batch(self, data):
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        runner = self.prepare(x, y, weights).runner
        with tf.device(devices.HOST):
            inputs = self.chain.flatten(x)
            loss, predictions = runner.infer(inputs)
            loss += self._compiled_loss(y, predictions, weights)
            return self._logs(x, y, predictions, weights, loss, size_of_batch(inputs))

    def predict_batch(self, data):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        if self._prepared is None:
            raise HarmonyError("predict() was called before training, but Harmony plans when it "
                               "sees a batch with labels: call fit() or evaluate() first, or "
                               "detach() the model")
        with tf.device(devices.HOST):
            _, predictions = self._prepared.runner.infer(self.chain.flatten(x))
            return self.chain.structure(predictions)

    def _compiled_loss(self, y, predictions, weights):
        """The loss of a whole batch. With several outputs, updates the means of single losses."""
        compiled = self.model._compile_loss  # pylint: disable=protected-access
        return 0.0 if compiled is None else float(
            compiled(y, self.chain.structure(predictions), weights))

    def _logs(self, x, y, predictions, weights, loss, batch):
        self.model._loss_tracker.update_state(  # pylint: disable=protected-access
            loss, sample_weight=batch)
        return self.model.compute_metrics(x, y, self.chain.structure(predictions), weights)

    # --- For people -----------------------------------------------------------------------------

    def explain(self):
        """Describes the plan; "" before there is one."""
        return "" if self._prepared is None else explain(self, self._prepared)

    def predicted_peaks(self):
        """The planned peak bytes by device."""
        return dict(zip((device.name for device in self.devices), self._prepared.predicted()))

    def largest_peaks(self):
        """The peak bytes by device if all copies that may overlap with computing do."""
        return dict(zip((device.name for device in self.devices), self._prepared.at_most()))

    def portions(self):
        """The microbatch sizes of the last pack, for a batch of the planned size."""
        runner = self._prepared.runner
        spans = sorted(span for job in runner.jobs(runner.plan.batch) if job.is_last
                       for span in job.spans)
        return [last - first for first, last in spans]

    def reserved_peaks(self):
        """The most bytes that Thimble reserved on each device, free blocks included."""
        return {device.name: device.arena.stats()["peak_reserved"] if device.arena else 0
                for device in self.devices}

    def measured_peaks(self):
        """The peak bytes by device since the last plan, as Thimble measured; 0 without Thimble."""
        return {device.name: device.peak_bytes() for device in self.devices}

    def traffic(self):
        """Average bytes per step that packs took from other packs: "direct" from another device, or
        from the "host". The host bytes include inputs kept for the backward pass."""
        traffic = self._prepared.runner.traffic
        steps = max(1, traffic.steps)
        return {"direct": traffic.direct_bytes // steps, "host": traffic.host_bytes // steps}

    def close(self):
        """Ends the threads and restores the memory limits."""
        if self._prepared is not None:
            self._prepared.runner.close()
        for device in self.devices:
            device.close()

    def detach(self):
        """Returns the model to Keras. Its weights and optimizer stay as they are."""
        self.close()
        for name in ("train", "test", "predict"):
            delattr(self.model, f"make_{name}_function")
            setattr(self.model, f"{name}_function", None)


def attach(model, devices=None, memory=None, mode="auto", portion=None, plan=None, topology=None):
    """Trains a compiled model on devices that are too small for it, in packs and microbatches.

    `devices`: TensorFlow's names, such as ["GPU:0", "GPU:1"]; default: all GPUs. `memory`: most
    bytes on each device (a number, or a text such as "4GiB"). `mode`: "pp", "dp" or "auto".
    `portion`: samples in a microbatch, instead of the fastest size; BatchNorm sees no more than
    that. `plan`: a Plan to use as it is. `topology`: a file with the links between host and GPUs;
    default: the links of this machine.
    """
    attached = Attached(model, checks.device_names(devices), memory, checks.mode(mode),
                        checks.portion(portion), plan, topology)

    def make(name, one_batch, several):
        def make_function(force=False):
            function_name = f"{name}_function"
            if force or getattr(model, function_name) is None:
                setattr(model, function_name, several(model, one_batch))
            return getattr(model, function_name)

        setattr(model, f"make_{name}_function", make_function)
        setattr(model, f"{name}_function", None)

    make("train", attached.train_batch, _over_iterator)
    make("test", attached.test_batch, _over_iterator)
    make("predict", attached.predict_batch, _over_list)
    return attached


def plan(model, x, y, sample_weight=None, devices=None, memory=None, mode="auto", portion=None,
         topology=None):
    """Plans how attach() would train on batches like (x, y): call explain() on the result.

    Measures the layers, but trains nothing and leaves the model as it is.
    """
    dry = Attached(model, checks.device_names(devices), memory, checks.mode(mode),
                   checks.portion(portion), topology=topology)
    try:
        dry.prepare(x, y, sample_weight)
    finally:
        dry.close()
    return dry


def profile(model, x, y, path, sample_weight=None, device=None, sizes=(1, 2, 4)):
    """Measures a compiled model layer by layer and writes a CSV file for `thimble harmony`.

    Runs on one device (default: the first GPU), with microbatches of `sizes` samples.
    """
    [name, *_] = checks.device_names(None if device is None else [device])
    measured = Attached(model, [name], 1, "pp")
    try:
        inputs, labels = measured.tensors(x, y, sample_weight)
        rows = profiler.measure(measured.chain, measured.devices[0], measured.loss, inputs, labels,
                                sizes, profiler.update_rate(model.optimizer))
        profiler.write(rows, path)
    finally:
        measured.close()


def _over_iterator(model, one_batch):
    def function(iterator):
        logs = None
        for _ in range(model.steps_per_execution):
            data = next(iterator, None)
            if data is None:
                break
            logs = one_batch(data)
        if logs is None:
            raise StopIteration
        return logs

    return function


def _over_list(_, one_batch):
    def function(batches):
        outputs = [one_batch(data) for data in batches]
        return keras.tree.map_structure(lambda *parts: tf.concat(parts, 0), *outputs)

    return function


def _to_tensor(value):
    return None if value is None else tf.convert_to_tensor(value)


def _limit_of(device, memory):
    if memory is None:
        if device.arena is None:
            raise HarmonyError(f"Thimble does not serve {device.name}, so its memory is unknown: "
                               "give memory=, such as memory='10GiB'")
        return device.arena.stats()["limit"]
    return checks.size(memory)
