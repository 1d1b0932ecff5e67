"""SARIF 2.1.0: faults in source, with file and line, for code scanning and editors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from trainprobe import __version__
from trainprobe.report.format import Format, Layout

if TYPE_CHECKING:
    from trainprobe.lint.model import Finding, Fix, NotRead
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"fail": "error", "likely": "warning", "warn": "warning", "unknown": "note"}


def _findings(result: LintResult, _: Layout) -> str:
    """Return the findings of lint; what was not read stands among the notifications."""
    from trainprobe.lint.engine import all_rules

    described = {rule.id: rule for rule in all_rules()}
    names = sorted({finding.rule for finding in result.findings} | set(described))
    rules: list[dict[str, Any]] = []
    for name in names:
        rule = described.get(name)
        texts = {"shortDescription": rule.title, "fullDescription": rule.why} if rule else {}
        rules.append({"id": name, **{key: {"text": text} for key, text in texts.items()}})
    return _log(
        "trainprobe lint",
        rules,
        [_finding(finding, names.index(finding.rule)) for finding in result.findings],
        [_notification(left_out) for left_out in result.not_read],
    )


def _finding(finding: Finding, index: int) -> dict[str, Any]:
    advice = f" {finding.fix.says}" if finding.fix else ""
    sure = finding.confidence
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": "error" if sure >= 0.8 else "warning" if sure >= 0.5 else "note",
        "message": {"text": f"{finding.says} {finding.why}{advice}"},
        "locations": [_location(finding.file, finding.line, finding.column)],
        "partialFingerprints": {"trainprobe/v1": _fingerprint(finding)},
        "properties": {"cause": finding.id, "confidence": sure},
        **(
            {"fixes": [_fix(finding.file, finding.fix)]} if finding.fix and finding.fix.safe else {}
        ),
    }


def _fingerprint(finding: Finding) -> str:
    """The same for a finding that only moved: a viewer does not tell it anew."""
    file = os.path.normpath(finding.file).replace(os.sep, "/")
    known_by = f"{finding.rule}\0{finding.id}\0{file}\0{finding.code}"
    return hashlib.blake2b(known_by.encode(errors="replace"), digest_size=16).hexdigest()


def _fix(file: str, fix: Fix) -> dict[str, Any]:
    """The edits of a safe rewrite; SARIF counts columns from 1, and an end is the column behind."""
    replacements = [
        {
            "deletedRegion": {
                "startLine": edit.line,
                "startColumn": edit.column + 1,
                "endLine": edit.end_line,
                "endColumn": edit.end_column + 1,
            },
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    artifact = _location(file)["physicalLocation"]["artifactLocation"]
    return {
        "description": {"text": fix.says},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
    }


def _notification(left_out: NotRead) -> dict[str, Any]:
    """At level error: the analysis is not complete (SARIF 2.1.0, 3.58.6)."""
    says = f"{left_out.file}: {left_out.reason}" if left_out.file else left_out.reason
    return {
        "level": "error",
        "message": {"text": says},
        "locations": [_location(left_out.file)] if left_out.file else [],
        **({"associatedRule": {"id": left_out.rule}} if left_out.rule else {}),
    }


def _script(report: Report, _: Layout) -> str:
    """Return what is wrong with a batch script, at its lines."""
    from trainprobe.report.extra import rows_of
    from trainprobe.report.phrases import clean

    plan = report.extra.get("sbatch")
    plan = plan if isinstance(plan, Mapping) else {}
    file = clean(str(plan.get("script") or "script"))
    results = []
    for row in rows_of(plan, "rows"):
        if row.get("state") in _LEVELS:
            says, fix = (clean(str(row.get(name) or "")) for name in ("says", "fix"))
            line = row.get("line")
            result = {
                "ruleId": clean(str(row.get("id") or "")),
                "level": _LEVELS[str(row["state"])],
                "message": {"text": f"{says} {fix}".rstrip()},
                "locations": [_location(file, line if isinstance(line, int) else 0)],
            }
            results.append(result)
    rules = [{"id": name} for name in sorted({str(result["ruleId"]) for result in results})]
    unseen = [
        {"level": "error", "message": {"text": clean(entry.would_settle)}, "locations": []}
        for entry in report.undecided
        if entry.id == "cannot-look"
    ]
    return _log("trainprobe ready --sbatch", rules, results, unseen)


def _diagnosis(report: Report, _: Layout) -> str:
    """Return the first cause of each trouble, at the user's line where it is known; what could not
    be seen, and could have changed the verdict, stands among the notifications.
    """
    from trainprobe.report.extra import rows_of, text_of
    from trainprobe.report.phrases import clean
    from trainprobe.report.text import first_causes

    results = []
    for cause in first_causes(report):
        lines = [
            row
            for shown in rows_of(report.extra, "excerpts")
            if shown.get("group") == cause.group
            for row in rows_of(shown, "lines")
            if row.get("guilty") is True
        ]
        places = [
            _location(clean(text_of(row, "file")), line)
            for row in lines
            if isinstance(line := row.get("line"), int)
        ]
        advice = f" {cause.fixes[0].title}." if cause.fixes else ""
        result = {
            "ruleId": cause.id,
            "level": "error" if cause.named and cause.confidence >= 0.8 else "warning",
            "message": {"text": f"{clean(cause.summary or cause.title)}{clean(advice)}"},
            "locations": places,
            "properties": {
                "confidence": cause.confidence,
                "ranks": list(cause.ranks),
                "hosts": list(cause.hosts),
            },
        }
        results.append(result)
    rules = [{"id": name} for name in sorted({str(result["ruleId"]) for result in results})]
    unseen = [
        {"level": "error", "message": {"text": clean(entry.would_settle)}, "locations": []}
        for entry in report.undecided
        if entry.id == "cannot-look" and not report.conclusive
    ]
    return _log(f"trainprobe {report.command}", rules, results, unseen)


def _location(file: str, line: int = 0, column: int = 0) -> dict[str, Any]:
    uri = quote(os.path.normpath(file).replace(os.sep, "/"))
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if line > 0:
        place["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return {"physicalLocation": place}


def _log(
    name: str,
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    notifications: Sequence[Mapping[str, Any]],
) -> str:
    """Return a log with one run. Columns count characters."""
    run = {
        "tool": {"driver": {"name": name, "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not notifications,
                "toolExecutionNotifications": notifications,
            }
        ],
        "results": results,
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


FORMAT = Format(
    name="sarif",
    title="SARIF 2.1.0 for code scanning and editors",
    ending=".sarif",
    renders={
        "diagnosis": _diagnosis,
        "readiness": _diagnosis,
        "script": _script,
        "findings": _findings,
    },
)
