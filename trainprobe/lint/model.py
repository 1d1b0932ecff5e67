"""What a rule finds in source, and how it would be mended."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainprobe.lint.modules import Module
    from trainprobe.lint.program import Program

SHOWN_FROM = 0.5
"""Findings that are less sure than this are left out unless they are selected by name."""


@dataclass(frozen=True)
class Edit:
    """Replace text in the finding's file. Lines count from 1, columns from 0, in characters."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Fix:
    """A rewrite, in words and, where `--fix` can make it safely, as edits."""

    says: str
    edits: tuple[Edit, ...] = ()

    @property
    def safe(self) -> bool:
        return bool(self.edits)

    def as_json(self) -> dict[str, Any]:
        return {"says": self.says, "safe": self.safe, "edits": [vars(edit) for edit in self.edits]}


@dataclass(frozen=True)
class Finding:
    """One fault in source. `id` is the cause, `rule` the pattern; columns count from 1."""

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
    """The first and the last line of the code that it is about, where that is more than its
    line.
    """
    reaches: tuple[str, int] = ("", 0)
    """File and line of the call that it leads to."""
    code: str = ""
    """The text of its line, by which a baseline knows it again."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "rule": self.rule,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "says": self.says,
            "why": self.why,
            "confidence": self.confidence,
            "fix": self.fix.as_json() if self.fix else None,
        }


def _no_find(_program: Program) -> Iterable[Finding]:
    return ()


@dataclass(frozen=True)
class Rule:
    """One source pattern, a file's `RULE`; its `find` yields findings made by `RULE.finding`."""

    id: str
    cause: str
    title: str
    why: str
    confidence: float
    """What a plain case deserves."""
    fix: str = ""
    """What to write instead, unless a finding says it more exactly."""
    also: tuple[str, ...] = ()
    """Other causes that it may find."""
    plain_hint: float = SHOWN_FROM
    """What those of its plain cases deserve that are hints, as code of others has shown. A look at
    a running job takes these too: its stacks decide what source leaves open.
    """
    find: Callable[[Program], Iterable[Finding]] = _no_find
    """Set by the engine, from the file that declares the rule."""

    def finding(
        self,
        module: Module,
        node: ast.AST,
        message: str,
        *,
        cause: str = "",
        why: str = "",
        confidence: float | None = None,
        fix: str = "",
        edits: tuple[Edit, ...] | None = None,
        about: ast.AST | None = None,
    ) -> Finding:
        """Make a finding at `node`, about this code; a notebook's line is that of its text."""
        line = getattr(node, "lineno", 1)
        return Finding(
            id=cause or self.cause,
            rule=self.id,
            file=module.path,
            line=line,
            column=module.column_of(line, getattr(node, "col_offset", 0)) + 1,
            says=message,
            why=why or self.why,
            confidence=round(self.confidence if confidence is None else confidence, 2),
            fix=Fix(fix or self.fix, edits or ()),
            code=module.lines[line - 1].strip() if line <= len(module.lines) else "",
            span=(getattr(about, "lineno", 0), getattr(about, "end_lineno", None) or 0),
        )


@dataclass(frozen=True)
class NotRead:
    """A file left out, by all rules or by `rule`, and why. An empty `file` means all files."""

    file: str
    reason: str
    rule: str = ""
