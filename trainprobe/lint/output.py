"""Findings as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.lint.model import Finding, NotRead

SCHEMA = "trainprobe.lint/1"
BOLD, DIM, RED, YELLOW, CYAN, PLAIN = (
    "\x1b[1m",
    "\x1b[2m",
    "\x1b[31m",
    "\x1b[33m",
    "\x1b[36m",
    "\x1b[0m",
)


@dataclass(frozen=True)
class ReadStats:
    """What was read: files, lines, and how long reading and all rules took, in seconds; files of
    tests in folders, which are read where they are named.
    """

    files: int
    lines: int
    took_s: float
    tests_left_out: int = 0


@dataclass(frozen=True)
class LintResult:
    """A whole answer."""

    findings: Sequence[Finding]
    read: ReadStats
    not_read: Sequence[NotRead] = ()
    mended: Sequence[Finding] = field(default=())
    in_baseline: int = 0
    """Findings that are not told since the baseline holds them."""
    unchanged: int = 0
    """Findings that are not told since they are about lines that did not change."""

    @property
    def complete(self) -> bool:
        """Whether all rules judged all files. Otherwise, finding nothing proves nothing."""
        return not self.not_read


def as_json(entry: LintResult) -> str:
    """Return the document `trainprobe.lint/1`; `fixed` are the findings that `--fix` mended."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "findings": [finding.as_json() for finding in entry.findings],
        "fixed": [item.as_json() for item in entry.mended],
        "in_baseline": entry.in_baseline,
        "unchanged": entry.unchanged,
        "read": vars(entry.read),
        "complete": entry.complete,
        "not_read": [vars(problem) for problem in entry.not_read],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def as_lines(entry: LintResult, *, colour: bool = False, quiet: bool = False) -> list[str]:
    """The findings by file, a summary last. `quiet` keeps only findings and skipped files."""
    bold, dim, red, yellow, cyan, plain = (
        (BOLD, DIM, RED, YELLOW, CYAN, PLAIN) if colour else ("",) * 6
    )
    lines: list[str] = []
    last = None
    for finding in entry.findings:
        if not quiet and finding.file != last and last is not None:
            lines.append("")
        last = finding.file
        tone = red if finding.confidence >= 0.8 else yellow
        place = f"{printable(finding.file)}:{finding.line}:{finding.column}"
        lines.append(
            f"{bold}{place}{plain}  {tone}{finding.id}{plain}  {printable(finding.says)}"
            f" {dim}({finding.confidence:.0%}){plain}"
        )
        if not quiet:
            lines.append(f"    why  {printable(finding.why)}")
            if finding.fix is not None:
                hint = " [--fix does it]" if finding.fix.safe else ""
                lines.append(f"    {cyan}do{plain}   {printable(finding.fix.says)}{hint}")
    if lines and not quiet:
        lines.append("")
    lines += [_left_out(problem) for problem in entry.not_read[:20]]
    if len(entry.not_read) > 20:
        lines.append(f"not read: {len(entry.not_read) - 20} more; --json has them all")
    if quiet:
        return lines
    if entry.mended:
        lines.append(f"{_count(len(entry.mended), 'finding')} mended.")
    where = len({item.file for item in entry.findings})
    found = (
        f"{_count(len(entry.findings), 'finding')} in {_count(where, 'file')}"
        if entry.findings
        else "Nothing found"
    )
    found += "" if entry.complete else " in what was read, which is not all"
    fixable = sum(
        1 for item in entry.findings if item.fix is not None and item.fix.safe and item.fix.edits
    )
    hint = f" {fixable} can be mended with --fix." if fixable else ""
    lines.append(
        f"{found}; {entry.read.lines:,} lines of {_count(entry.read.files, 'file')} read in"
        f" {entry.read.took_s:.1f} s.{hint}"
    )
    if entry.in_baseline:
        lines.append(f"{_count(entry.in_baseline, 'finding')} of the baseline not shown.")
    if entry.unchanged:
        lines.append(f"{_count(entry.unchanged, 'finding')} in unchanged lines not shown.")
    if entry.read.tests_left_out:
        tests = _count(entry.read.tests_left_out, "file")
        lines.append(f"{tests} of tests left out; name them to have them read.")
    return lines


def _left_out(not_read: NotRead) -> str:
    what = "not judged" if not_read.rule else "not read"
    return (
        f"{what}: {printable(not_read.file)}: {printable(not_read.reason)}"
        if not_read.file
        else f"{what}: {printable(not_read.reason)}"
    )


def printable(text: str) -> str:
    """Source and file names may hold escape sequences; a terminal must not obey them."""
    return "".join(item if item.isprintable() else f"\\x{ord(item):02x}" for item in text)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
