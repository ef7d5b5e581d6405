"""The peak of part of a program."""

from thimble_gpu import arenas


class Peak:
    """`with thimble_gpu.peak() as p:`, then `p.bytes`: the most that was in use at once meanwhile.

    What all threads hold on the device counts, and what was held when it began. Others may begin and
    end meanwhile, in this thread and in others; neither they nor reset_peak() change it, and it
    changes no other peak. Figures can be read before its end.
    """

    def __init__(self, device=0, framework=None):
        self._arena = arenas.find(device, framework)
        self._mark = None
        self._peaks = None

    def __enter__(self):
        if self._mark is not None:
            raise RuntimeError("this peak is being taken: make another one with thimble_gpu.peak()")
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
            raise RuntimeError("no peak was taken: use `with thimble_gpu.peak() as p:`")
        return self._peaks[name]

    @property
    def bytes(self):
        """The most bytes that were in use at once."""
        return self._read("in_use")

    @property
    def reserved(self):
        """The most bytes that were taken from the device at once."""
        return self._read("reserved")
