"""One line of a stack, wherever it came from: py-spy, a traceback or faulthandler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Frame:
    """A place in a program. `line` is 0 where it is unknown.

    `text` is the source line where a traceback printed it. `locals` holds only what was asked for
    by name (a lock's path); it takes no part in comparing two frames, since a value may change
    while the place does not.
    """

    name: str = ""
    file: str = ""
    line: int = 0
    text: str = field(default="", compare=False)
    locals: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def base(self) -> str:
        """The file's name without its folders, which differ between containers and machines."""
        return self.file.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def function(self) -> str:
        """Its name without the classes and functions that it lies in: `step` of `Trainer.step`."""
        return self.name.rsplit(".", 1)[-1]

    @property
    def where(self) -> str:
        """`train.py:88 in step`, as it is shown to the reader."""
        place = f"{self.base}:{self.line}" if self.line > 0 else self.base
        return f"{place} in {self.name}" if self.name else place
