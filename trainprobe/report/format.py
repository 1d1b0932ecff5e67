"""What an output format declares. Each format is one file in `formats/`: see
docs/guides/add-a-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from trainprobe.model.diagnosis import Report
    from trainprobe.model.evidence import Evidence

Subject = Literal["diagnosis", "readiness", "script", "findings"]
COMMANDS: Mapping[Subject, tuple[str, ...]] = {
    "diagnosis": ("diagnose", "attach", "explain"),
    "readiness": ("ready",),
    "script": ("ready --sbatch",),
    "findings": ("lint",),
}
"""What a format may render, and the commands that report it: the first three are a `Report`,
findings are what lint returns.
"""


@dataclass(frozen=True)
class Layout:
    """How the text should look. Formats for machines ignore it, but for `ended_at`.

    `width` is in columns; `quiet` leaves the headline and the first causes; `verbose` adds the ids
    of the evidence behind each reason; `ended_at` is the Unix time when the run ended, None where
    it is not known. `evidence` gives the records behind a report to a format that shows them,
    `earlier` is a report to compare it with.
    """

    width: int = 100
    colour: bool = False
    quiet: bool = False
    verbose: bool = False
    ended_at: float | None = None
    evidence: Callable[[], Iterable[Evidence]] = tuple


@dataclass(frozen=True)
class Format:
    """An output format.

    `name` is what `--format` takes and `title` says in one line what it is for. `--output FILE`
    picks the format by `ending`, such as `.xml`. `renders` holds a function for each subject that
    the format can show; commands whose subject is missing do not offer it.

    `exit_code` replaces the command's own code while the format is on stdout. `failure` turns the
    sentence of an error into what stdout gets instead of a report, and the exit code.
    """

    name: str
    title: str
    ending: str
    renders: Mapping[Subject, Callable[[Any, Layout], str]]
    exit_code: Callable[[Report], int] | None = None
    failure: Callable[[str], tuple[str, int]] | None = None


def of_reports(
    render: Callable[[Report, Layout], str],
) -> Mapping[Subject, Callable[[Any, Layout], str]]:
    """Return `renders` of a format that shows every `Report` in the same way."""
    return {"diagnosis": render, "readiness": render, "script": render}
