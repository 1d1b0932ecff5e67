"""Every failure that we foresee: one sentence on what is wrong, one on what to do, and the exit
code.
"""

from __future__ import annotations

from collections.abc import Sequence


class TrainprobeError(Exception):
    """Base of all foreseen failures. `says` is what is wrong, `do` what to type or change next;
    `lines` are to be shown below, such as the jobs to choose from.
    """

    exit_code = 70

    def __init__(self, says: str, do: str = "", lines: Sequence[str] = ()) -> None:
        super().__init__("\n  ".join((f"{says} {do}".strip(), *lines)))
        self.lines = tuple(lines)
        self.says = says
        self.do = do


class UsageError(TrainprobeError):
    """The command line, the configuration file or a path given by the user cannot be used."""

    exit_code = 2


class CannotLook(TrainprobeError):  # noqa: N818 - it says what happened, as the causes do
    """What was asked about could not be seen at all, so that no verdict is possible."""

    exit_code = 3


class Fault(TrainprobeError):  # noqa: N818
    """A fault of trainprobe itself."""

    exit_code = 70
