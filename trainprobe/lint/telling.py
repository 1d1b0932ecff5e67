"""What was found, as text for a terminal, as JSON and as SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from trainprobe.lint.model import Finding, NotRead, Rule

SCHEMA = "trainprobe.lint/1"
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
BOLD, DIM, RED, YELLOW, CYAN, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[36m", "\x1b[0m"


@dataclass(frozen=True)
class Read:
    """What was read: files, lines, and how long reading and all rules took, in seconds."""

    files: int
    lines: int
    took_s: float


@dataclass(frozen=True)
class Told:
    """A whole answer."""

    findings: Sequence[Finding]
    read: Read
    not_read: Sequence[NotRead] = ()
    mended: Sequence[Finding] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether all rules judged all files. Otherwise that nothing was found does not say that nothing is there."""
        return not self.not_read


def as_json(told: Told) -> str:
    """Return the document `trainprobe.lint/1`; `fixed` are the findings that `--fix` mended."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "findings": [one.as_json() for one in told.findings],
        "fixed": [one.as_json() for one in told.mended],
        "read": vars(told.read),
        "complete": told.complete,
        "not_read": [vars(one) for one in told.not_read],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def as_sarif(told: Told, rules: Iterable[Rule], version: str) -> str:
    """Return SARIF 2.1.0. Columns count characters (`unicodeCodePoints`); what was not read stands among the notifications."""
    known = {rule.id: rule for rule in rules}
    used = sorted({one.rule for one in told.findings} | set(known))
    described = []
    for name in used:
        rule = known.get(name)
        described.append({"id": name, **({"shortDescription": {"text": rule.title}, "fullDescription": {"text": rule.why}} if rule else {})})
    document = {
        "$schema": SARIF,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "trainprobe lint", "version": version, "rules": described}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": told.complete,
                "toolExecutionNotifications": [_notification(one) for one in told.not_read],
            }],
            "results": [_result(one, used.index(one.rule)) for one in told.findings],
        }],
    }  # fmt: skip
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _notification(one: NotRead) -> dict[str, Any]:
    """At level error: the analysis is not complete (SARIF 2.1.0, 3.58.6)."""
    place = [{"physicalLocation": {"artifactLocation": {"uri": _uri(one.file)}}}] if one.file else []
    rule = {"associatedRule": {"id": one.rule}} if one.rule else {}
    return {"level": "error", "message": {"text": f"{one.file}: {one.reason}" if one.file else one.reason}, "locations": place, **rule}


def _uri(file: str) -> str:
    return quote(os.path.normpath(file).replace(os.sep, "/"))


def _result(one: Finding, index: int) -> dict[str, Any]:
    advice = f" {one.fix.says}" if one.fix else ""
    return {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": "error" if one.confidence >= 0.8 else "warning" if one.confidence >= 0.5 else "note",
        "message": {"text": f"{one.says} {one.why}{advice}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(one.file)}, "region": {"startLine": one.line, "startColumn": one.column}}}],
        "properties": {"cause": one.id, "confidence": one.confidence},
    }


def as_lines(told: Told, *, colour: bool = False, quiet: bool = False) -> list[str]:
    """Return the text, grouped by file, a summary last; `quiet` leaves out reasons, rewrites and the summary, but not what was not looked at."""
    bold, dim, red, yellow, cyan, plain = (BOLD, DIM, RED, YELLOW, CYAN, PLAIN) if colour else ("",) * 6
    lines: list[str] = []
    last = None
    for one in told.findings:
        if not quiet and one.file != last and last is not None:
            lines.append("")
        last = one.file
        tone = red if one.confidence >= 0.8 else yellow
        lines.append(
            f"{bold}{printable(one.file)}:{one.line}:{one.column}{plain}  {tone}{one.id}{plain}  {printable(one.says)} {dim}({one.confidence:.0%}){plain}"
        )
        if not quiet:
            lines.append(f"    why  {printable(one.why)}")
            if one.fix is not None:
                lines.append(f"    {cyan}do{plain}   {printable(one.fix.says)}{' [--fix does it]' if one.fix.safe and one.fix.edits else ''}")
    if lines and not quiet:
        lines.append("")
    lines += [_left_out(one) for one in told.not_read[:20]]
    if len(told.not_read) > 20:
        lines.append(f"not read: {len(told.not_read) - 20} more; --json has them all")
    if quiet:
        return lines
    if told.mended:
        lines.append(f"{_count(len(told.mended), 'finding')} mended.")
    where = len({one.file for one in told.findings})
    found = f"{_count(len(told.findings), 'finding')} in {_count(where, 'file')}" if told.findings else "Nothing found"
    found += "" if told.complete else " in what was read, which is not all"
    fixable = sum(1 for one in told.findings if one.fix is not None and one.fix.safe and one.fix.edits)
    hint = f" {fixable} can be mended with --fix." if fixable else ""
    lines.append(f"{found}; {told.read.lines:,} lines of {_count(told.read.files, 'file')} read in {told.read.took_s:.1f} s.{hint}")
    return lines


def _left_out(one: NotRead) -> str:
    what = "not judged" if one.rule else "not read"
    return f"{what}: {printable(one.file)}: {printable(one.reason)}" if one.file else f"{what}: {printable(one.reason)}"


def printable(text: str) -> str:
    """Source and file names may hold escape sequences; a terminal must not obey them."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
