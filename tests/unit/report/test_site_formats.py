"""JUnit, Prometheus and Nagios: each valid by its own rules, and all of one mind with the exit
code, the JSON and the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.expectation import CASES, names
from tests.unit.report import exposition, handmade
from trainprobe.cli.exit_codes import HEALTHY, UNDETERMINED, code_of
from trainprobe.model.diagnosis import Notice, Report, World
from trainprobe.report.format import Layout
from trainprobe.report.formats import choose
from trainprobe.report.formats.nagios import NAMES
from trainprobe.report.formats.nagios import exit_code as nagios_code
from trainprobe.report.json_report import read_report, report_text
from trainprobe.report.text import text_of


def junit_text(report: Report) -> str:
    return choose("readiness", "junit").renders["readiness"](report, Layout())


def nagios_line(report: Report) -> str:
    return choose("readiness", "nagios").renders["readiness"](report, Layout())


def prometheus_text(report: Report, at: float | None = None) -> str:
    layout = Layout(ended_at=at)
    return choose("readiness", "prometheus").renders["readiness"](report, layout)


HOSTILE = "a\"b\\n|c'=d\n<x>&amp;]]>\x00\x1b[31m\ud800 node\u202e"
BARE = replace(
    handmade.HEALTHY,
    command="ready",
    says="",
    causes=(),
    suspects=(),
    ladder=(),
    warnings=(),
    world=World(),
    cascade=(),
    undecided=(),
    unexplained=(),
)


def check(name: str, state: str, severity: str, *hosts: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "state": state,
        "severity": severity,
        "who": "admin",
        "hosts": list(hosts),
        "says": f"{name} is {state}",
        "fix": "fix it",
        **more,
    }


def ready(
    verdict: str, *checks: dict[str, Any], conclusive: bool = True, exclude: tuple[str, ...] = ()
) -> Report:
    readiness = {
        "ready": verdict == "healthy",
        "checks": list(checks),
        "exclude": list(exclude),
        "budget": "quick",
    }
    return replace(BARE, verdict=verdict, conclusive=conclusive, extra={"readiness": readiness})  # type: ignore[arg-type]


READY = {
    "ready": ready(
        "healthy", check("lim.nofile", "ok", "degraded", "node1", "node2", value="65536")
    ),
    "ready-warned": ready(
        "healthy",
        check("host.swap", "warn", "warning", "node1"),
        check("host.thp", "fail", "warning", "node1"),
    ),
    "ready-unseen": ready(
        "healthy",
        check("host.mce", "unknown", "warning", "node1"),
        check("ib.state", "skip", "blocker", "node1"),
    ),
    "node-out": ready(
        "at-risk",
        check("shm.size", "fail", "blocker", "node3", value=64.0),
        check("shm.size", "ok", "blocker", "node1"),
        exclude=("node3",),
    ),
    "degraded": ready(
        "at-risk", check("lim.nofile", "fail", "degraded", "node1", "node2", threshold="1025")
    ),
    "undecided": ready(
        "undetermined", check("fs.hang", "unknown", "blocker", "node2"), conclusive=False
    ),
    "unsure": ready("healthy", check("fs.hang", "ok", "blocker", "node2"), conclusive=False),
    "only-the-verdict": ready("at-risk"),
    "odd": replace(
        BARE,
        extra={
            "readiness": {
                "checks": [
                    None,
                    7,
                    {"id": ""},
                    {"id": "x", "state": [], "hosts": 5, "value": "7 of 9"},
                    {"id": 3},
                ]
            }
        },
    ),
}


def every_report() -> Iterator[tuple[str, Report]]:
    for name in names():
        yield (
            f"case-{name}",
            read_report((CASES / name / "expected" / "diagnosis.json").read_text(encoding="utf-8")),
        )
    yield from ((f"made-{name}", report) for name, report in {**handmade.ALL, **READY}.items())


REPORTS = dict(every_report())


def junit(report: Report) -> ET.Element:
    """Read JUnit XML as strictly as Jenkins' junit-10.xsd has it: names, order, counts."""
    root = ET.fromstring(junit_text(report))
    assert root.tag == "testsuites"
    for suite in root:
        assert (suite.tag, suite.attrib["tests"]) == ("testsuite", str(len(suite)))
        seen = set()
        for case in suite:
            assert (case.tag, set(case.attrib)) == ("testcase", {"classname", "name", "time"})
            inside = [child.tag for child in case]
            assert inside in ([], ["skipped"], ["error"], ["failure"], ["system-out"])
            seen.add((case.attrib["classname"], case.attrib["name"]))
        assert len(seen) == len(suite), "CI systems keep one of two cases of the same name"
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == len(suite.findall(f"testcase/{tag}"))
    for name in ("tests", "failures", "errors", "skipped"):
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root)
    return root


@pytest.mark.parametrize("name", REPORTS)
def test_all_forms_say_the_same(name: str) -> None:
    report = REPORTS[name]
    code = code_of(report.verdict, conclusive=report.conclusive)
    root, metrics, state = (
        junit(report),
        exposition.read(prometheus_text(report, 1.0)),
        nagios_code(report),
    )

    assert json.loads(report_text(report))["verdict"] == report.verdict
    assert report.verdict.upper() in text_of(report)
    assert re.match(
        rf"TRAINPROBE [A-Z]+ - {report.verdict}(?:, not conclusive)?: ", nagios_line(report)
    )
    assert exposition.of(metrics, "trainprobe_verdict") == {
        (one,): float(one == report.verdict)
        for one in ("healthy", "slow", "hung", "crashed", "at-risk", "undetermined")
    }
    failures, errors = int(root.attrib["failures"]), int(root.attrib["errors"])
    passes = {
        failures + errors == 0,
        code == HEALTHY,
        exposition.of(metrics, "trainprobe_pass") == {(): 1.0},
        report.verdict == "healthy" and state in (0, 1),
    }
    assert len(passes) == 1
    assert (code == UNDETERMINED) == (state == 3)
    assert (failures > 0) == (exposition.of(metrics, "trainprobe_failed") == {(): 1.0})
    assert code == UNDETERMINED or (failures > 0) == (code != HEALTHY)
    first = root.find("testsuite/testcase")
    assert first is not None
    assert first.attrib["name"] == "verdict"


@pytest.mark.parametrize("name", REPORTS)
def test_the_nagios_line_is_one_line_with_data_that_parses(name: str) -> None:
    line = nagios_line(REPORTS[name])
    text, bar, data = line.rstrip("\n").partition(" | ")
    assert (line.count("\n"), line.count("|"), bar, line.endswith("\n")) == (1, 1, " | ", True)
    assert text.startswith(f"TRAINPROBE {NAMES[nagios_code(REPORTS[name])]} - ")
    assert re.fullmatch(r"time=[\d.]+s;;;0( (?:\w+|'[^'=]+')=-?[\d.e+-]+(?:;;;0)?)*", data)


@pytest.mark.parametrize(
    ("name", "nagios", "failures", "errors", "skipped"),
    [
        ("ready", 0, 0, 0, 0),
        ("ready-warned", 1, 0, 0, 0),
        ("ready-unseen", 0, 0, 0, 2),
        ("node-out", 2, 2, 0, 0),
        ("degraded", 1, 3, 0, 0),
        ("undecided", 3, 0, 2, 0),
        ("unsure", 3, 0, 1, 0),
        ("only-the-verdict", 2, 1, 0, 0),
        ("odd", 0, 0, 0, 1),
    ],
)
def test_each_state_has_its_place(
    name: str, nagios: int, failures: int, errors: int, skipped: int
) -> None:
    """One failure more than the checks have: the verdict's own."""
    root = junit(READY[name])
    assert (
        nagios_code(READY[name]),
        *(int(root.attrib[one]) for one in ("failures", "errors", "skipped")),
    ) == (nagios, failures, errors, skipped)


def test_a_node_at_fault_is_told_everywhere() -> None:
    report = READY["node-out"]
    line, metrics = nagios_line(report), exposition.read(prometheus_text(report))
    assert line.startswith(
        "TRAINPROBE CRITICAL - at-risk: leave out node3; shm.size on node3: shm.size is fail | "
    )
    assert "ok=1;;;0 warn=0;;;0 fail=1;;;0" in line
    assert line.endswith(" 'shm.size@node3'=64\n")
    assert exposition.of(metrics, "trainprobe_node_excluded") == {("node3",): 1.0}
    assert exposition.of(metrics, "trainprobe_check_state") == {
        ("shm.size", "node3", "blocker", "admin"): 2.0,
        ("shm.size", "node1", "blocker", "admin"): 0.0,
    }
    failed = {
        (suite.attrib.get("hostname"), case.attrib["name"])
        for suite in junit(report)
        for case in suite
        if case.find("failure") is not None
    }
    assert failed == {(None, "verdict"), ("node3", "shm.size")}


def test_a_warning_of_a_pass_is_a_warning_for_nagios_and_no_failure() -> None:
    noticed = replace(READY["ready"], warnings=(Notice("host.swap", "Swap is in use."),))
    assert (nagios_code(noticed), junit(noticed).attrib["failures"]) == (1, "0")


def test_the_time_of_the_run_is_told_where_it_is_known() -> None:
    told = exposition.of(
        exposition.read(prometheus_text(READY["ready"], 1_700_000_000.25)),
        "trainprobe_run_timestamp_seconds",
    )
    assert told == {(): 1_700_000_000.25}
    assert "timestamp" not in prometheus_text(READY["ready"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            *(st.text(max_size=40) | st.just(HOSTILE) for _ in range(4)),
            st.sampled_from(("ok", "warn", "fail", "skip", "unknown", "?")),
        )
    )
)
def test_hostile_words_break_no_form(rows: list[tuple[str, str, str, str, str]]) -> None:
    checks = [
        {
            "id": name or "x",
            "state": state,
            "severity": "blocker",
            "hosts": [host],
            "says": says,
            "fix": fix,
            "value": 1e400,
        }
        for name, host, says, fix, state in rows
    ]
    report = ready("at-risk", *checks, exclude=(HOSTILE,))
    root = ET.fromstring(junit_text(report))
    assert root.find("testsuite/testcase/failure") is not None
    exposition.read(prometheus_text(report))
    assert nagios_line(report).count("\n") == 1
