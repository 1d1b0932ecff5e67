"""What a check of the plan found, and the changes to the script that correct it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "likely", "fail", "skip", "unknown"]
"""`fail` is wrong by what the scheduler's or the launcher's documentation says; `likely` is wrong
unless something that is not visible here makes it right; `warn` is worth a look.
"""
WORST: tuple[State, ...] = ("fail", "likely", "unknown", "warn", "ok", "skip")
MENDED: tuple[State, ...] = ("fail", "likely", "warn")


@dataclass(frozen=True)
class Edit:
    """A change to the script: `line` counts from 1.

    `how`: swap `old` for `text` in it, append `text` to it, replace it whole, insert lines above
    it, or delete it.
    """

    line: int
    how: Literal["swap", "append", "replace", "insert", "delete"]
    text: str = ""
    old: str = ""


Edits = tuple[Edit, ...]


@dataclass(frozen=True)
class Finding:
    """One result of a check. `line` is a line of the script, 0 where no line is to blame. `fix`
    says what to do, `edits` do it.
    """

    id: str
    state: State
    says: str
    fix: str = ""
    line: int = 0
    value: str = ""
    edits: Edits = ()


@dataclass(frozen=True)
class Check:
    """One check of the plan; its methods make its findings."""

    id: str

    def ok(self, says: str, value: str = "") -> Finding:
        return Finding(self.id, "ok", says, value=value)

    def skip(self, says: str) -> Finding:
        return Finding(self.id, "skip", says)

    def unknown(self, says: str, fix: str = "", line: int = 0, value: str = "") -> Finding:
        return Finding(self.id, "unknown", says, fix, line, value)

    def warn(
        self, says: str, fix: str, line: int = 0, value: str = "", edits: Edits = ()
    ) -> Finding:
        return Finding(self.id, "warn", says, fix, line, value, edits)

    def likely(
        self, says: str, fix: str, line: int = 0, value: str = "", edits: Edits = ()
    ) -> Finding:
        return Finding(self.id, "likely", says, fix, line, value, edits)

    def fail(
        self, says: str, fix: str, line: int = 0, value: str = "", edits: Edits = ()
    ) -> Finding:
        return Finding(self.id, "fail", says, fix, line, value, edits)


def corrected(text: str, findings: Iterable[Finding]) -> str:
    """Return the script with all edits made, in the order of the findings. An edit whose line an
    earlier edit has changed is left out; no text is inserted twice.
    """
    lines = text.split("\n")
    current: list[str | None] = list(lines)
    inserted: dict[int, list[str]] = {}
    present: set[str] = set()
    for edit in (edit for finding in findings for edit in finding.edits):
        if not 1 <= edit.line <= len(lines) + (edit.how == "insert"):
            continue
        if edit.how == "insert":
            new = [line for line in edit.text.split("\n") if line not in present or line == "wait"]
            present.update(new)
            inserted.setdefault(edit.line, []).extend(new)
        else:
            current[edit.line - 1] = _edited(current[edit.line - 1], lines[edit.line - 1], edit)
    result: list[str] = []
    for number, line in enumerate([*current, None], start=1):
        result += inserted.get(number, [])
        result += [line] if line is not None else []
    return "\n".join(result)


def _edited(line: str | None, original: str, edit: Edit) -> str | None:
    if line is None or edit.how == "delete":
        return None
    if edit.how == "append":
        return line.rstrip() + edit.text
    if edit.how == "swap":
        return line.replace(edit.old, edit.text, 1) if edit.old in line else line
    return edit.text if line == original else line


def diff(before: str, after: str, name: str) -> tuple[str, ...]:
    """Return the changes as the lines of a unified diff, none where nothing changed."""
    lines, corrected_lines = before.split("\n"), after.split("\n")
    return tuple(
        difflib.unified_diff(lines, corrected_lines, name, f"{name}, corrected", n=1, lineterm="")
    )


def worst(findings: Sequence[Finding]) -> State:
    return min((finding.state for finding in findings), key=WORST.index)
