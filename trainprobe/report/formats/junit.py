"""A report as JUnit XML, in the form that Jenkins, GitLab and GitHub's actions read: one suite for
each host, one testcase for each check on it.

There is no standard; the elements, their order and their attributes are those of Jenkins'
junit-10.xsd: `testsuites`, `testsuite`, `testcase`, therein one of `skipped`, `error`, `failure`,
then `system-out`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from trainprobe.report.format import Format, Layout, of_reports
from trainprobe.report.outcomes import Outcome, outcomes
from trainprobe.report.phrases import clean

if TYPE_CHECKING:
    from trainprobe.lint.model import Finding
    from trainprobe.lint.output import LintResult
    from trainprobe.model.diagnosis import Report


def _report(report: Report, _: Layout) -> str:
    """Return `report` as XML text, with a declaration and a final newline.

    What keeps a report from being a pass is a `failure`; what could not be measured and could have
    changed it an `error`; a check that does not apply, or that could not be measured and changes
    nothing, is `skipped` with the reason. Warnings pass and appear in `system-out`. So failures and
    errors are 0 exactly where the exit code is 0. Times are in seconds.
    """
    by_host: dict[str, list[Outcome]] = {}
    for row in outcomes(report):
        by_host.setdefault(row.host, []).append(row)
    suites = [
        _suite(
            f"trainprobe {report.command} {host}".strip(),
            [_case(report.command, row) for row in rows],
            sum(row.took_s for row in rows),
            {"hostname": host} if host else {},
        )
        for host, rows in by_host.items()
    ]
    return _document(f"trainprobe {report.command}", suites, report.looked_s)


def _findings(result: LintResult, _: Layout) -> str:
    """Return one suite for each file with findings: a finding is a `failure`, a file that could
    not be read an `error`. Where neither is there, one testcase passes.
    """
    by_file: dict[str, list[ET.Element]] = {}
    for finding in result.findings:
        name = f"{finding.id}:{finding.line}:{finding.column}"
        case = _lint_case(by_file, clean(finding.file), name)
        attributes = {"type": finding.id, "message": clean(finding.says)}
        ET.SubElement(case, "failure", attributes).text = _advice(finding)
    for left_out in result.not_read:
        case = _lint_case(by_file, clean(left_out.file), left_out.rule or "reading")
        ET.SubElement(case, "error", {"type": "not-read", "message": clean(left_out.reason)})
    if not by_file:
        _lint_case(by_file, "", "lint")
    suites = [_suite(f"lint {file}".strip(), cases, 0.0, {}) for file, cases in by_file.items()]
    return _document("trainprobe lint", suites, result.read.took_s)


def _lint_case(by_file: dict[str, list[ET.Element]], file: str, name: str) -> ET.Element:
    case = ET.Element(
        "testcase", {"classname": file or "trainprobe.lint", "name": name, "time": "0.000"}
    )
    by_file.setdefault(file, []).append(case)
    return case


def _advice(finding: Finding) -> str:
    fix = f"\n{clean(finding.fix.says)}" if finding.fix else ""
    return f"{clean(finding.file)}:{finding.line}\n{clean(finding.why)}{fix}"


def _document(name: str, suites: Sequence[ET.Element], took_s: float) -> str:
    sums = {
        count: str(sum(int(suite.attrib[count]) for suite in suites))
        for count in ("tests", "failures", "errors", "skipped")
    }
    root = ET.Element("testsuites", {"name": name, **sums, "time": f"{took_s:.3f}"})
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(
    name: str, cases: Sequence[ET.Element], took_s: float, attributes: Mapping[str, str]
) -> ET.Element:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": f"{took_s:.3f}",
    }
    suite = ET.Element("testsuite", {"name": name, **attributes, **counts})
    suite.extend(cases)
    return suite


def _case(command: str, row: Outcome) -> ET.Element:
    classname = ".".join(part for part in ("trainprobe", command, row.kind, row.host) if part)
    attributes = {"classname": classname, "name": row.id, "time": f"{row.took_s:.3f}"}
    case = ET.Element("testcase", attributes)
    if row.spoils:
        name = "error" if row.state == "unknown" else "failure"
        attributes = {"type": row.severity or row.kind, "message": row.says or row.state}
        ET.SubElement(case, name, attributes).text = _body(row)
    elif row.state == "skip":
        ET.SubElement(case, "skipped", {"message": row.says or "does not apply"})
    elif row.state == "unknown":
        says = f"not measured: {row.says}" if row.says else "not measured"
        ET.SubElement(case, "skipped", {"message": says})
    elif row.state != "ok":
        ET.SubElement(case, "system-out").text = f"warning: {_body(row)}"
    return case


def _body(row: Outcome) -> str:
    lines = [row.says or row.state]
    lines += [f"threshold: {row.threshold}"] if row.threshold else []
    lines += [f"fix ({row.who or 'user'}): {row.fix}"] if row.fix else []
    return "\n".join(lines)


FORMAT = Format(
    name="junit",
    title="XML for Jenkins, GitLab and GitHub: one test for each check",
    ending=".xml",
    renders={**of_reports(_report), "findings": _findings},
)
