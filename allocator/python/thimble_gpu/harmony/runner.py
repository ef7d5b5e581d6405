"""Trains a chain by a plan: builds the jobs, runs steps and updates the model's variables."""

import itertools

import tensorflow as tf

from thimble_gpu.harmony import device as devices
from thimble_gpu.harmony import rehearsal
from thimble_gpu.harmony import routes
from thimble_gpu.harmony.functions import Functions
from thimble_gpu.harmony.job import Job
from thimble_gpu.harmony.step import Step
from thimble_gpu.harmony.step import size_of_batch
from thimble_gpu.harmony.update import Update


class Runner:
    """A chain, its devices and a plan. One step at a time."""

    def __init__(self, chain, device_list, plan, loss, optimizer):
        self.chain = chain
        self.plan = plan
        self._devices = device_list
        self._update = Update(optimizer, chain.model.trainable_variables)
        self._updates = devices.Stream("update")
        self._functions = Functions(chain, plan, loss)
        self._jobs = {}  # by batch size
        self._routes = {}  # by batch size
        self.traffic = routes.Traffic()  # of all steps

    def close(self):
        self._updates.close()

    def jobs(self, batch):
        """The jobs of a step, in the order they are submitted."""
        if batch not in self._jobs:
            self._jobs[batch] = self._make_jobs(batch)
        return self._jobs[batch]

    def _make_jobs(self, batch):
        last, *others = self.plan.backward
        tasks = [("save" if task.saved else "forward", task) for task in self.plan.forward]
        tasks += [("last", last)]
        tasks += [("restore" if task.saved else "backward", task) for task in others
                  if task.last >= self.chain.first_trained]
        return self._jobs_of(tasks, batch)

    def _jobs_of(self, tasks, batch):
        made = []
        for kind, task in tasks:
            for lane, (first, last) in enumerate(self._shares(task, batch)):
                spans = _spans(first, last, task.microbatches)
                device = self._devices[lane if task.gpu < 0 else task.gpu]
                if spans:
                    pack, function = self._functions.of(kind, task)
                    made.append(Job(kind, pack, device, spans, function, lane))
        return made

    def infer(self, inputs):
        """Computes a batch on the devices, pack by pack. Returns the losses that layers add and the
        list of predictions, on the host."""
        batch = size_of_batch(inputs)
        tasks = self.plan.forward + self.plan.backward[:1]
        jobs = self._jobs.setdefault(("infer", batch), self._jobs_of(
            [("infer", task) for task in tasks], batch))
        outputs, logits = self.chain.outputs, self.chain.logits
        ways = self._routes_of(("infer", batch), jobs, outputs + logits)
        step = Step(self.chain, batch, inputs, None, None, ways)
        devices.wait_for_all([step.submit(job, None) for job in jobs])
        self._keep_state(step, self.chain.changing_in_inference)
        pairs = [step.pair(value, (0, batch)) for value in outputs]
        return step.loss(), self.chain.complete(
            *zip(*pairs), [step.pair(value, (0, batch))[0] for value in logits])

    def _routes_of(self, key, jobs, outputs):
        if key not in self._routes:
            self._routes[key] = routes.find(jobs, outputs)
        return self._routes[key]

    def _shares(self, task, batch):
        if task.gpu >= 0:
            return [(0, batch)]
        borders = [batch * i // self.plan.gpus for i in range(self.plan.gpus + 1)]
        return list(zip(borders, borders[1:]))

    def rehearse(self, inputs, labels):
        """Returns the Footprints of the jobs; see rehearsal.py."""
        batch = size_of_batch(inputs)
        step = Step(self.chain, batch, inputs, labels, tf.ones([]))
        return rehearsal.rehearse(step, self.jobs(batch))

    def step(self, inputs, labels):
        """Trains one step. Returns the loss and the list of predictions, on the host."""
        batch = size_of_batch(inputs)
        if batch not in self._jobs:
            self.rehearse(inputs, labels)
        jobs = self.jobs(batch)
        step = Step(self.chain, batch, inputs, labels, self._update.scale(),
                    self._routes_of(batch, jobs, ()), self.traffic)
        self._update.begin(_count_users(jobs))
        ends = []
        for job, following in _with_following(jobs):
            left = step.submit(job, following)
            ends.append(left)
            if job.is_backward:
                ends.append(self._updates.submit(self._add, job, left))
        devices.wait_for_all(ends)
        self._update.finish()
        self._keep_state(step, self.chain.changing)
        self.traffic.steps += 1
        predictions = step.predictions.get((0, batch))
        count = len(self.chain.outputs)
        return step.loss(), self.chain.complete(
            predictions[:count], predictions[count:2 * count], predictions[2 * count:])

    def _add(self, job, left):
        gradients = left.take()
        self._update.add([v for v in job.pack.weights if id(v) in job.pack.reached], gradients)

    def _keep_state(self, step, changing):
        """Stores the state: the mean over lanes as in tf.distribute, but seeds of lane 0."""
        lanes = {}
        for (_, key), part in sorted(step.final_states.items(), key=lambda item: item[0][0]):
            if key in changing:
                lanes.setdefault(key, []).append(part.peek())
        with tf.device(devices.HOST):
            for stage in self.chain.stages:
                for variable in stage.variables():
                    found = lanes.pop(id(variable), None)
                    if found:
                        mean = len(found) > 1 and found[0].dtype.is_floating
                        variable.assign(tf.add_n(found) / len(found) if mean else found[0])


def _spans(first, last, sizes):
    """The microbatches of samples [first, last), of the planned sizes."""
    spans = []
    for size in itertools.chain(sizes, itertools.repeat(sizes[-1])):
        if first >= last:
            return spans
        spans.append((first, min(first + size, last)))
        first += size


def _with_following(jobs):
    """Each job with the next one on the same device."""
    for number, job in enumerate(jobs):
        yield job, next((j for j in jobs[number + 1:] if j.device is job.device), None)


def _count_users(jobs):
    counts = {}
    for job in jobs:
        if job.is_backward:
            for key in job.pack.reached:
                counts[key] = counts.get(key, 0) + 1
    return counts
