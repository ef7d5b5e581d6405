"""The possible results of comparing one program in one mode."""

import dataclasses

# How a run may end: normally, or out of memory where memory is short.
DONE = "done"
RAN_OUT = "ran out"

SAME = "same"
UNUSABLE = "unusable"  # stock itself fails
UNSTEADY = "unsteady"  # stock differs from itself
NO_FAILURE = (SAME, RAN_OUT, UNUSABLE, UNSTEADY)


@dataclasses.dataclass
class Verdict:
    mode: str
    kind: str
    detail: str = ""
    log: str = ""

    @property
    def fails(self):
        return self.kind not in NO_FAILURE

    def __str__(self):
        return f"{self.mode}: {self.kind}" + (f": {self.detail}" if self.detail else "")
