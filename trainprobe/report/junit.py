"""A report as JUnit XML, in the form that Jenkins, GitLab and GitHub's actions read: one suite for each host, one testcase for each check on it.

There is no standard; the elements, their order and their attributes are those of Jenkins' junit-10.xsd: `testsuites`, `testsuite`, `testcase`,
therein one of `skipped`, `error`, `failure`, then `system-out`.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from trainprobe.model.diagnosis import Report
from trainprobe.report.outcomes import Outcome, outcomes


def junit_text(report: Report) -> str:
    """Return `report` as XML text, with a declaration and a final newline.

    What keeps a report from being a pass is a `failure`; what could not be measured and could have changed it an `error`; a check that does not
    apply, or that could not be measured and changes nothing, is `skipped` with the reason. Warnings pass and stand in `system-out`.
    So failures and errors are 0 exactly where the exit code is 0. Times are in seconds.
    """
    by_host: dict[str, list[Outcome]] = {}
    for row in outcomes(report):
        by_host.setdefault(row.host, []).append(row)
    suites = [_suite(report.command, host, rows) for host, rows in by_host.items()]
    root = ET.Element("testsuites", {"name": f"trainprobe {report.command}", **_sums(suites), "time": f"{report.looked_s:.3f}"})
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(command: str, host: str, rows: Sequence[Outcome]) -> ET.Element:
    cases = [_case(command, row) for row in rows]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": f"{sum(row.took_s for row in rows):.3f}",
    }
    suite = ET.Element("testsuite", {"name": f"trainprobe {command} {host}".strip(), **({"hostname": host} if host else {}), **counts})
    suite.extend(cases)
    return suite


def _sums(suites: Sequence[ET.Element]) -> dict[str, str]:
    return {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors", "skipped")}


def _case(command: str, row: Outcome) -> ET.Element:
    classname = ".".join(part for part in ("trainprobe", command, row.kind, row.host) if part)
    case = ET.Element("testcase", {"classname": classname, "name": row.id, "time": f"{row.took_s:.3f}"})
    if row.spoils:
        name = "error" if row.state == "unknown" else "failure"
        ET.SubElement(case, name, {"type": row.severity or row.kind, "message": row.says or row.state}).text = _body(row)
    elif row.state == "skip":
        ET.SubElement(case, "skipped", {"message": row.says or "does not apply"})
    elif row.state == "unknown":
        ET.SubElement(case, "skipped", {"message": f"not measured: {row.says}" if row.says else "not measured"})
    elif row.state != "ok":
        ET.SubElement(case, "system-out").text = f"warning: {_body(row)}"
    return case


def _body(row: Outcome) -> str:
    lines = [row.says or row.state]
    lines += [f"threshold: {row.threshold}"] if row.threshold else []
    lines += [f"fix ({row.who or 'user'}): {row.fix}"] if row.fix else []
    return "\n".join(lines)
