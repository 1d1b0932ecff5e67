"""Every output format over every report: none disagrees with the text, and hostile words break
none.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report import handmade
from tests.unit.report.test_site_formats import HOSTILE, REPORTS
from trainprobe.cli import run
from trainprobe.errors import UsageError
from trainprobe.lint.model import Finding, NotRead
from trainprobe.lint.output import LintResult, ReadStats
from trainprobe.report.cause_section import heading, how_sure
from trainprobe.report.format import COMMANDS, Layout, Subject
from trainprobe.report.formats import choose, every_format, failure_of, formats_of
from trainprobe.report.text import first_causes, text_of

FINDINGS = LintResult(
    [
        Finding(
            "checkpoint-corrupt", "save-by-all", "a/train.py", 7, 5, "All save.", "Cut off.", 0.9
        )
    ],
    ReadStats(2, 80, 0.1),
    [NotRead("broken.py", "It does not parse.")],
)
NOTHING = LintResult([], ReadStats(1, 3, 0.1))


def rendered(name: str, result: Any, subject: Subject = "diagnosis") -> str:
    return choose(subject, name).renders[subject](result, Layout())


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_says_what_the_text_says(name: str) -> None:
    report = REPORTS[name]
    text = rendered("markdown", report)
    assert text.startswith(f"**{report.verdict.upper()}")
    headings = re.findall(r"^### \d+\. (.+?) \((.*)\)$", text, re.MULTILINE)
    causes = [(heading(cause), how_sure(cause)) for cause in first_causes(report)]
    assert [(found.replace("\\", ""), sure) for found, sure in headings] == causes[:3]
    assert "\n".join(text_of(report).splitlines()[:3]) in text


def test_markup_in_a_report_is_text() -> None:
    cause = replace(handmade.HUNG.causes[0], summary="`rank_0` <PID> | *x*\n# y")
    report = replace(handmade.HUNG, causes=(cause,), says="```\n</details><b>")
    text = rendered("markdown", report)
    assert r"\`rank\_0\` \<PID\> \| \*x\* \# y" in text
    assert text.count("\n</details>\n") == text.count("\n<details>") == 2
    hostile = replace(report, says=HOSTILE)
    for one in formats_of("diagnosis"):
        one.renders["diagnosis"](hostile, Layout()).encode("utf-8")


def test_findings_of_lint_in_every_format() -> None:
    for one in formats_of("findings"):
        text = one.renders["findings"](FINDINGS, Layout())
        assert "train.py" in text or one.name == "prometheus", one.name
        assert "does not parse" in text or "files_unread 1\n" in text, one.name
        assert one.renders["findings"](NOTHING, Layout()), one.name
    assert 'failures="1" errors="1"' in rendered("junit", FINDINGS, "findings")
    assert 'tests="1" failures="0" errors="0"' in rendered("junit", NOTHING, "findings")


def test_sarif_of_a_batch_script_names_its_lines() -> None:
    rows = [
        {"id": "sbatch.tasks", "state": "fail", "line": 4, "says": "Too few.", "fix": "Ask for 8."},
        {"id": "sbatch.time", "state": "ok", "line": 5, "says": "Fine."},
    ]
    plan = {"script": "job.sh", "rows": rows}
    report = replace(handmade.HEALTHY, undecided=(), extra={"sbatch": plan})
    (run_,) = json.loads(rendered("sarif", report, "script"))["runs"]
    (result,) = run_["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"], result["message"]["text"]) == (
        "sbatch.tasks",
        "error",
        "Too few. Ask for 8.",
    )
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("job.sh", 4)


def test_formats_declare_themselves() -> None:
    formats = every_format()
    assert formats[0].name == "text"
    assert {one.name for one in formats} >= {"text", "json", "markdown", "html", "junit", "sarif"}
    assert len({one.ending for one in formats}) == len(formats)
    for one in formats:
        assert one.title
        assert set(one.renders) <= set(COMMANDS)


def test_a_format_that_cannot_render_it_is_refused_with_those_that_can() -> None:
    with pytest.raises(UsageError, match=r"does not work with lint. These do: text, .*sarif"):
        choose("findings", "nagios")
    assert choose("diagnosis", None, "out.md").name == "markdown"
    assert choose("diagnosis", None, "out.sarif").name == "sarif"
    assert choose("findings", None, "out.nagios").name == "text"


def test_only_a_monitor_gets_its_error_on_stdout() -> None:
    argv = ["ready", "--format", "nagios"]
    assert failure_of(argv, "a|b") == ("TRAINPROBE UNKNOWN - a/b\n", 3)
    assert failure_of(["ready", "--format=json"], "x") is None
    assert failure_of(["diagnose", "--", *argv], "x") is None


def test_two_formats_on_stdout_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "x", "--format", "junit", "--json", "-"]) == 2
    assert "--format junit and --json - cannot both be stdout" in capsys.readouterr().err
