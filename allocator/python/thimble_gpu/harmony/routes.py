"""What goes from one device straight to another: the boundary between a job and the next one.

The sender never waits for the receiver. A receiver that has room, and nothing else to bring before,
asks. If it has asked when the sender's results are there, they are copied to it; otherwise they
leave for the host, as all results do, and the receiver takes them from there. So neither device
ever holds more than without. What later jobs need too, such as inputs for the backward pass, goes
to the host in any case.
"""

import dataclasses
import threading

from thimble_gpu.harmony.device import size_of


@dataclasses.dataclass(frozen=True)
class Route:
    """From a job to the next one, which is on another device."""
    receiver: object
    values: tuple  # Values that the job makes and the next one uses
    gradients: tuple  # Values of which the job tells the next one the gradients
    kept: frozenset  # of `values`, those that are wanted on the host too


def find(jobs, outputs):
    """Routes by job. `outputs` are Values that are wanted on the host at the end."""
    found = {}
    for job, receiver in zip(jobs, jobs[1:]):
        if job.device is receiver.device:
            continue
        values = tuple(value for value in job.hands_on if value in receiver.pack.uses)
        # Where several jobs tell a gradient, the host sums it up.
        gradients = tuple(value for value in job.tells if value in receiver.receives and
                          sum(value in other.tells for other in jobs) == 1)
        kept = frozenset(value for value in values if value in outputs or any(
            value in other.pack.uses for other in jobs if other is not receiver))
        if values or gradients:
            found[job] = Route(receiver, values, gradients, kept)
    return found


@dataclasses.dataclass(frozen=True)
class Arrived:
    """What has come to a device directly, of one portion."""
    values: dict = dataclasses.field(default_factory=dict)  # with their masks
    gradients: dict = dataclasses.field(default_factory=dict)

    def add_to(self, job, brought):
        """To what the job has brought from the host."""
        for number, value in enumerate(job.pack.uses):
            if value in self.values:
                brought["uses"][number], brought["masks"][number] = self.values[value]
        for number, value in enumerate(job.receives):
            if value in self.gradients:
                brought["gradients"][number] = self.gradients[value]


NOTHING = Arrived()


class Handover:
    """Of one portion, along a route. `handed` becomes the cell of what has Arrived."""

    def __init__(self, route):
        self._route = route
        self._asked = threading.Event()
        self._is_direct = False
        self.handed = None

    def ask(self):
        """The receiver has room, and waits for what comes; NOTHING if that goes over the host."""
        self._asked.set()
        return self.handed.take()

    def send(self, job, results):
        """The sender has results: copies them, or leaves them for the host."""
        self._is_direct = self._asked.is_set()
        if not self._is_direct:
            return NOTHING
        bring = self._route.receiver.device.bring_maybe
        made = dict(zip(job.hands_on, zip(results.get("values", ()), results.get("masks", ()))))
        told = dict(zip(job.pack.uses, results.get("gradients", ())))
        return Arrived({value: tuple(map(bring, made[value])) for value in self._route.values},
                       {value: bring(told[value]) for value in self._route.gradients})

    def not_for_the_host(self):
        """Values, and Values whose gradients, have arrived and are wanted nowhere else."""
        if not self._is_direct:
            return (), ()
        return set(self._route.values) - self._route.kept, self._route.gradients


class Traffic:
    """Bytes that jobs took from others, by the way they came."""

    def __init__(self):
        self.steps = 0
        self.direct_bytes = self.host_bytes = 0
        self._lock = threading.Lock()

    def add(self, arrived, from_host):
        came = [pair[0] for pair in arrived.values.values()] + list(arrived.gradients.values())
        with self._lock:
            self.direct_bytes += size_of(came)
            self.host_bytes += size_of(from_host)
