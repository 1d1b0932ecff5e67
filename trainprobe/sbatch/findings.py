"""What a check of the plan found, and the changes to the script that would mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail", "skip", "unknown"]
WORST: tuple[State, ...] = ("fail", "unknown", "warn", "ok", "skip")


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


@dataclass(frozen=True)
class Finding:
    """One thing found. `line` is that of the script, 0 where it is of no line. `fix` says what
    to do, `edits` do it.
    """

    id: str
    state: State
    says: str
    fix: str = ""
    line: int = 0
    value: str = ""
    edits: tuple[Edit, ...] = ()


def corrected(text: str, findings: Iterable[Finding]) -> str:
    """Return the script with all edits made, in the order of the findings. A change whose place
    another has taken is left out; no text is inserted twice.
    """
    lines = text.split("\n")
    current: list[str | None] = list(lines)
    inserted: dict[int, list[str]] = {}
    seen: set[str] = set()
    for edit in (edit for finding in findings for edit in finding.edits):
        if not 1 <= edit.line <= len(lines) + (edit.how == "insert"):
            continue
        if edit.how == "insert":
            new = [one for one in edit.text.split("\n") if one not in seen or one == "wait"]
            seen.update(new)
            inserted.setdefault(edit.line, []).extend(new)
        else:
            current[edit.line - 1] = _changed(current[edit.line - 1], lines[edit.line - 1], edit)
    result: list[str] = []
    for number in range(1, len(lines) + 2):
        result += inserted.get(number, [])
        if number <= len(lines) and (line := current[number - 1]) is not None:
            result.append(line)
    return "\n".join(result)


def _changed(line: str | None, before: str, edit: Edit) -> str | None:
    if line is None or edit.how == "delete":
        return None
    if edit.how == "append":
        return line.rstrip() + edit.text
    if edit.how == "swap":
        return line.replace(edit.old, edit.text, 1) if edit.old in line else line
    return edit.text if line == before else line


def diff(before: str, after: str, name: str) -> tuple[str, ...]:
    """Return the changes as the lines of a unified diff, none where nothing changed."""
    return tuple(
        difflib.unified_diff(
            before.split("\n"), after.split("\n"), name, f"{name}, corrected", n=1, lineterm=""
        )
    )


def worst(findings: Sequence[Finding]) -> State:
    return min((finding.state for finding in findings), key=WORST.index)
