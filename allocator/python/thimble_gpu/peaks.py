"""Measures the peak of part of a program."""

from thimble_gpu import arenas


class Peak:
    """`with thimble_gpu.peak() as p:` measures the most that was in use at once; read `p.bytes`.

    Everything that any thread holds on the device counts, also what was held at the begin. Peaks
    may be nested or overlap, in one thread or several; they do not affect each other, and
    reset_peak() affects none. Figures can be read before the end.
    """

    def __init__(self, device=0, framework=None):
        self._arena = arenas.find(device, framework)
        self._mark = None
        self._peaks = None

    def __enter__(self):
        if self._mark is not None:
            raise RuntimeError("this peak is already being measured: create another one with "
                               "thimble_gpu.peak()")
        self._mark = self._arena.begin_peak()
        return self

    def __exit__(self, *error):
        self._peaks = self._arena.read_peak(self._mark)
        mark, self._mark = self._mark, None
        self._arena.end_peak(mark)

    def _read(self, name):
        if self._mark is not None:
            self._peaks = self._arena.read_peak(self._mark)
        if self._peaks is None:
            raise RuntimeError("no peak was measured: use `with thimble_gpu.peak() as p:`")
        return self._peaks[name]

    @property
    def bytes(self):
        """The most bytes that were in use at once."""
        return self._read("in_use")

    @property
    def reserved(self):
        """The most bytes that were taken from the device at once."""
        return self._read("reserved")
