"""The small rule of the slots says what the whole judgement says of the same evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.checks import catalogue
from trainprobe.checks.outcome import ProgramResult
from trainprobe.facts import read
from trainprobe.model.diagnosis import Report
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB, Subject
from trainprobe.pipelines import explain
from trainprobe.ready.case_folders import keep
from trainprobe.ready.local_checks import CheckResult
from trainprobe.report.slot_report import slot_report
from trainprobe.waits.readiness import doubts_of, ready_groups, ready_verdict

HOST = "node1"
PLAN = {
    "budget": "quick",
    "slot": "prolog",
    "by": "here",
    "nodes": [HOST],
    "nproc": 0,
    "undone": [],
}
IDS = st.sampled_from(
    [
        *sorted(spec.id for spec in catalogue().values() if "prolog" in spec.slots),
        "fs.mounts:/data",
        "not.known",
    ]
)
ROW = st.fixed_dictionaries(
    {
        "id": IDS,
        "state": st.sampled_from(["ok", "ok", "warn", "fail", "skip", "unknown", "?"]),
        "says": st.sampled_from(["", "It is so."]),
    },
    optional={
        "severity": st.sampled_from(["blocker", "degraded", "warning", "info", "odd"]),
        "who": st.sampled_from(["user", "admin"]),
    },
)
PROGRAM = st.builds(
    lambda name, outcome, checks, dropped: ProgramResult(
        name, outcome, f"{name} did not end well", {"checks": checks, "dropped": dropped}
    ),
    st.sampled_from(["machine", "storage", "network"]),
    st.sampled_from(["ok", "ok", "partial", "timed_out", "crashed", "unavailable"]),
    st.lists(ROW, max_size=4, unique_by=lambda row: row["id"]),
    st.lists(st.builds(lambda name: {"id": name, "reason": "no time"}, IDS), max_size=2),
)


def evidence(programs: list[ProgramResult]) -> list[Evidence]:
    rows = [Evidence("E1", "ready", JOB, "checks", "here", 1.0, 0.0, "ok", "", PLAN, (), 0)]
    for place, one in enumerate(programs, start=2):
        data = {"program": one.name, **one.data}
        rows.append(
            Evidence(
                f"E{place}",
                "checks",
                Subject("host", HOST),
                "checks",
                one.name,
                1.0,
                0.1,
                one.outcome,  # type: ignore[arg-type]
                one.reason,
                data,
                (),
                0,
            )
        )
    return rows


def reported(programs: list[ProgramResult]) -> Report:
    return slot_report(programs, host=HOST, slot="prolog", budget="quick")


@settings(max_examples=150, deadline=None)
@given(st.lists(PROGRAM, max_size=3, unique_by=lambda program: program.name))
def test_verdict_and_doubts_are_those_of_the_whole_judgement(programs: list[ProgramResult]) -> None:
    facts, small = read(evidence(programs)), reported(programs)
    assert small.verdict == ready_verdict(facts, ready_groups(facts))
    assert small.conclusive == (not doubts_of(facts))


@pytest.mark.parametrize("state", ["ok", "fail", "unknown", "warn"])
def test_a_kept_case_explained_says_the_same_of_each_check(state: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "fs.mounts", "state": state, "says": "/data is not mounted.", "value": 3},
        {"id": "host.swap", "state": "fail", "says": "Swap."},
    ]
    programs = [
        ProgramResult(
            "storage", "ok", "", {"program": "storage", "checks": rows, "open": "", "dropped": []}
        )
    ]
    told = [CheckResult("checks", one.name, one.data, began=1.0) for one in programs]
    keep(
        told,
        folder=str(tmp_path / "case"),
        host=HOST,
        slot="prolog",
        budget="quick",
        argv=("trainprobe", "ready"),
    )
    whole, small = explain(str(tmp_path / "case")), reported(programs)
    names = ("id", "state", "severity", "who", "hosts", "says", "fix", "threshold", "source")

    def shown(report: Report) -> list[list[Any]]:
        return sorted(
            [[row[name] for name in names] for row in report.extra["readiness"]["checks"]]
        )

    assert (whole.verdict, whole.conclusive, shown(whole)) == (
        small.verdict,
        small.conclusive,
        shown(small),
    )
    assert {"ready", "checks", "differences", "exclude", "dropped", "budget"} <= set(
        whole.extra["readiness"]
    ) & set(small.extra["readiness"])
