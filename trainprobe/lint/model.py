"""What a rule finds in source, and how it would be mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainprobe.lint.program import Program

SHOWN_FROM = 0.5
"""Findings that are less sure than this are left out unless they are selected by name."""


@dataclass(frozen=True)
class Edit:
    """Replace the text between two places of the finding's file. Lines count from 1, columns from 0, in characters."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Fix:
    """A rewrite, in words and, where it can be typed for the user, as edits. Only safe ones are applied by `--fix`."""

    says: str
    edits: tuple[Edit, ...] = ()
    safe: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"says": self.says, "safe": self.safe, "edits": [vars(edit) for edit in self.edits]}


@dataclass(frozen=True)
class Finding:
    """One fault seen in source. `id` is the cause that it would become, `rule` the pattern; column counts from 1."""

    id: str
    rule: str
    file: str
    line: int
    column: int
    says: str
    why: str
    confidence: float
    fix: Fix | None = None
    span: tuple[int, int] = (0, 0)
    """The first and the last line of the code that it is about, where that is more than its line."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id, "rule": self.rule, "file": self.file, "line": self.line, "column": self.column,
            "says": self.says, "why": self.why, "confidence": self.confidence, "fix": self.fix.as_json() if self.fix else None,
        }  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """One source pattern. `find` yields findings over a whole program; `confidence` is what a plain case deserves."""

    id: str
    cause: str
    title: str
    why: str
    confidence: float
    find: Callable[[Program], Iterable[Finding]]
    also: tuple[str, ...] = ()
    """Other causes that it may find."""


@dataclass(frozen=True)
class NotRead:
    """A file that was left out, by all rules or by `rule` alone, with the reason as a sentence. `file` is empty where it holds for all."""

    file: str
    reason: str
    rule: str = ""
