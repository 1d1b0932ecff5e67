"""Edits: made by rules, applied to text, and only where the result still parses."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence

from trainprobe.lint.model import Edit, Finding
from trainprobe.lint.modules import Module


def insert_line(module: Module, before: ast.stmt, text: str) -> Edit:
    """Insert `text`, unindented lines, before a statement and indented as it is."""
    first = min(
        [before.lineno, *(decorator.lineno for decorator in getattr(before, "decorator_list", []))]
    )
    line = module.lines[first - 1]
    indent = line[: len(line) - len(line.lstrip())]
    return Edit(
        first,
        0,
        first,
        0,
        "".join(f"{indent}{part}\n" if part else "\n" for part in text.split("\n")),
    )


def insert_after(module: Module, after: ast.stmt, text: str) -> Edit:
    """Insert lines after a statement, indented as it is."""
    line = module.lines[after.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    last = (after.end_lineno or after.lineno) + 1
    made = "".join(f"{indent}{part}\n" if part else "\n" for part in text.split("\n"))
    if last > len(module.lines):  # the file ends without a newline
        end = len(module.lines)
        return Edit(end, len(module.lines[-1]), end, len(module.lines[-1]), "\n" + made)
    return Edit(last, 0, last, 0, made)


def replace(module: Module, node: ast.expr | ast.stmt, text: str) -> Edit:
    """Replace a node's text."""
    end = node.end_lineno or node.lineno
    return Edit(
        node.lineno,
        module.column_of(node.lineno, node.col_offset),
        end,
        module.column_of(end, node.end_col_offset or 0),
        text,
    )


def add_keyword(module: Module, call: ast.Call, text: str) -> Edit:
    """Add `name=value` as the last argument of a call."""
    end = call.end_lineno or call.lineno
    column = module.column_of(end, call.end_col_offset or 0) - 1
    argument: list[ast.AST] = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not argument:
        return Edit(end, column, end, column, text)
    last = max(
        argument,
        key=lambda item: (getattr(item, "end_lineno", 0), getattr(item, "end_col_offset", 0)),
    )
    last_line = getattr(last, "end_lineno", end)
    last_column = module.column_of(last_line, getattr(last, "end_col_offset", 0))
    return Edit(last_line, last_column, last_line, last_column, f", {text}")


def applied(text: str, findings: Iterable[Finding]) -> tuple[str, list[Finding]]:
    """Apply the safe fixes of one file; return the new text and the mended findings. Overlapping
    fixes wait for the next run; a fix whose result does not parse is not applied.
    """
    taken: list[tuple[int, int, str]] = []
    mended: list[Finding] = []
    starts = _line_starts(text)
    for finding in findings:
        if finding.fix is None or not finding.fix.safe or not finding.fix.edits:
            continue
        spans = [
            span
            for edit in finding.fix.edits
            if (span := _span(starts, edit, len(text))) is not None
        ]
        if len(spans) != len(finding.fix.edits):
            continue
        fresh = [span for span in spans if span not in taken]
        if any(_overlap(item, other) for item in fresh for other in taken):
            continue
        tried = _spliced(text, [*taken, *fresh])
        if _parses(tried):
            taken += fresh
            mended.append(finding)
    return (_spliced(text, taken) if taken else text), mended


def difference(path: str, old: str, new: str) -> str:
    """Return a unified diff."""
    return "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
        )
    )


def _line_starts(text: str) -> list[int]:
    starts = [0]
    at = text.find("\n")
    while at != -1:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def _span(starts: Sequence[int], edit: Edit, length: int) -> tuple[int, int, str] | None:
    if not (1 <= edit.line <= len(starts) and 1 <= edit.end_line <= len(starts)):
        return None
    begin, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
    return (begin, end, edit.text) if 0 <= begin <= end <= length else None


def _overlap(item: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return item[0] < other[1] and other[0] < item[1]


def _spliced(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for begin, end, new in sorted(spans, key=lambda span: (span[0], span[1])):
        parts += [text[at:begin], new]
        at = end
    return "".join([*parts, text[at:]])


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
