"""Each command that reports has each form for machines, and the form for tickets stays short."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from tests.cases.expectation import CASES, names
from tests.unit.report import handmade
from trainprobe.report.format import COMMANDS, Layout
from trainprobe.report.formats import find
from trainprobe.report.json_report import read_report

REPORTS = {
    **handmade.ALL,
    **{name: read_report((CASES / name / "expected" / "diagnosis.json").read_text()) for name in names()},
}  # fmt: skip


@pytest.mark.parametrize("name", ["json", "markdown", "sarif", "junit", "prometheus", "html"])
def test_every_command_that_reports_has_the_format(name: str) -> None:
    found = find(name)
    assert found is not None
    assert set(found.renders) == set(COMMANDS)


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_fits_into_a_ticket(name: str) -> None:
    markdown = find("markdown")
    assert markdown is not None
    report = REPORTS[name]
    text = markdown.renders["diagnosis"](report, Layout())
    assert text.count("\n") <= 60
    assert text.startswith(f"**{report.verdict.upper()}")
    assert text.count("<details>") == text.count("</details>")
    assert text.count("```") % 2 == 0
    for cause in report.causes[:1]:
        assert cause.id in text or cause.title.split()[0] in text
        assert all(fix.title.split()[0] in text for fix in cause.fixes[:1])


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_names_the_cause_at_the_user_s_line(name: str) -> None:
    sarif = find("sarif")
    assert sarif is not None
    report = REPORTS[name]
    (run,) = json.loads(sarif.renders["diagnosis"](report, Layout()))["runs"]
    groups = {cause.group for cause in report.causes}
    assert len(run["results"]) == len(groups)
    assert {result["ruleId"] for result in run["results"]} == {
        rule["id"] for rule in run["tool"]["driver"]["rules"]
    }
    if "excerpts" in report.extra:
        place = run["results"][0]["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] > 0
    junit = find("junit")
    assert junit is not None
    ET.fromstring(junit.renders["diagnosis"](report, Layout()))
