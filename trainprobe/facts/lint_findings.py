"""What lint found in the user's script before it was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

TEXT_CAP = 600
FINDINGS_CAP = 200  # each is held against every frame of the suspects


@dataclass(frozen=True)
class LintFinding(Fact):
    """One pattern in source. `cause` is the id that it would become, `rule` the pattern,
    `confidence` from 0 to 1.

    `span` are the first and the last line of the code that it is about, 0 where that is `line`
    alone.
    `says` is what stands there, `fix` how it would better be written, empty where lint knows no
    rewrite.
    """

    cause: str = ""
    rule: str = ""
    file: str = ""
    line: int = 0
    says: str = ""
    why: str = ""
    confidence: float = 0.0
    fix: str = ""
    span: tuple[int, int] = (0, 0)

    @property
    def where(self) -> str:
        """`train.py:88`, as it is shown to the reader."""
        base = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{base}:{self.line}" if self.line > 0 else base


@dataclass(frozen=True)
class LintRead(Fact):
    """How much was read: `files` and `lines` of `script` and of what it imports. `left_out` says
    what was not, empty where all was.
    """

    script: str = ""
    files: int = 0
    lines: int = 0
    left_out: str = ""


def parse_lint(record: Evidence) -> list[Fact]:
    data = record.data
    read = LintRead(
        (record.id,),
        record.cell,
        None,
        fields.text(data, "script"),
        fields.whole(data, "files") or 0,
        fields.whole(data, "lines") or 0,
        fields.text(data, "left_out", cap=TEXT_CAP),
    )

    def finding(row: Mapping[str, Any]) -> Fact:
        cause, says = fields.text(row, "id"), fields.text(row, "says", cap=TEXT_CAP)
        if not cause or not says:
            raise fields.UnreadableError("a finding without a cause or without words")
        return LintFinding(
            (record.id,),
            record.cell,
            None,
            cause,
            fields.text(row, "rule"),
            fields.text(row, "file"),
            max(0, fields.whole(row, "line") or 0),
            says,
            fields.text(row, "why", cap=TEXT_CAP),
            min(1.0, max(0.0, fields.number(row, "confidence") or 0.0)),
            fields.text(row, "fix", cap=TEXT_CAP),
            _span(row.get("span")),
        )

    return [read, *fields.each(fields.items(data, "findings")[:FINDINGS_CAP], finding)]


def _span(value: Any) -> tuple[int, int]:
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(one, int) for one in value)
        and 0 < value[0] <= value[1]
    ):
        return value[0], value[1]
    return 0, 0
