"""Direct copies between devices: the boundary between a job and the next one.

The sender never waits for the receiver. A receiver that has room, and has already brought
everything before, asks. If it has asked by the time the sender has its results, they are copied to
it. Otherwise they go to the host, as all other results do, and the receiver takes them from there.
So no device ever holds more than it would without direct copies. What later jobs need too, such as
inputs for the backward pass, always goes to the host as well.
"""

import dataclasses
import threading

from thimble_gpu.harmony.device import size_of


@dataclasses.dataclass(frozen=True)
class Route:
    """From a job to the next one, which is on another device."""
    receiver: object
    values: tuple  # Values that the job makes and the next one uses
    gradients: tuple  # Values whose gradients the job hands to the next one
    kept: frozenset  # those of `values` that the host needs too


def find(jobs, outputs):
    """Routes by job. `outputs` are Values that the host needs at the end."""
    found = {}
    for job, receiver in zip(jobs, jobs[1:]):
        if job.device is receiver.device:
            continue
        values = tuple(value for value in job.hands_on if value in receiver.pack.uses)
        # If several jobs contribute to a gradient, the host sums them.
        gradients = tuple(value for value in job.differentiates if value in receiver.receives and
                          sum(value in other.differentiates for other in jobs) == 1)
        kept = frozenset(value for value in values if value in outputs or any(
            value in other.pack.uses for other in jobs if other is not receiver))
        if values or gradients:
            found[job] = Route(receiver, values, gradients, kept)
    return found


@dataclasses.dataclass(frozen=True)
class Arrived:
    """What has come to a device directly, for one microbatch."""
    values: dict = dataclasses.field(default_factory=dict)  # with their masks
    gradients: dict = dataclasses.field(default_factory=dict)

    def add_to(self, job, brought):
        """Adds it to what the job has brought from the host."""
        for number, value in enumerate(job.pack.uses):
            if value in self.values:
                brought["uses"][number], brought["masks"][number] = self.values[value]
        for number, value in enumerate(job.receives):
            if value in self.gradients:
                brought["gradients"][number] = self.gradients[value]


NOTHING = Arrived()


class Handover:
    """The handover of one microbatch along a route. `handed` is set to the future of an Arrived."""

    def __init__(self, route):
        self._route = route
        self._asked = threading.Event()
        self._is_direct = False
        self.handed = None

    def ask(self):
        """The receiver calls it when it has room. Waits; NOTHING if results go over the host."""
        self._asked.set()
        return self.handed.take()

    def send(self, job, results):
        """The sender calls it with its results: copies them, or leaves them for the host."""
        self._is_direct = self._asked.is_set()
        if not self._is_direct:
            return NOTHING
        bring = self._route.receiver.device.bring_maybe
        made = dict(zip(job.hands_on, zip(results.get("values", ()), results.get("masks", ()))))
        gradients = dict(zip(job.pack.uses, results.get("gradients", ())))
        return Arrived({value: tuple(map(bring, made[value])) for value in self._route.values},
                       {value: bring(gradients[value]) for value in self._route.gradients})

    def not_for_the_host(self):
        """The Values, and the Values of gradients, that have arrived and nobody else needs."""
        if not self._is_direct:
            return (), ()
        return set(self._route.values) - self._route.kept, self._route.gradients


class Traffic:
    """Bytes that jobs took from other jobs, directly and over the host."""

    def __init__(self):
        self.steps = 0
        self.direct_bytes = self.host_bytes = 0
        self._lock = threading.Lock()

    def add(self, arrived, from_host):
        came = [pair[0] for pair in arrived.values.values()] + list(arrived.gradients.values())
        with self._lock:
            self.direct_bytes += size_of(came)
            self.host_bytes += size_of(from_host)
