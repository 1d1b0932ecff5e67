"""Concluding comes to a report even where one cause of the catalogue is at fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainprobe import causes
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.evidence import Evidence
from trainprobe.pipelines import conclude
from trainprobe.waits import SuspectGroup


def test_a_fault_in_one_cause_does_not_cost_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(facts: Facts, group: SuspectGroup) -> tuple[Weighing, ...]:
        raise AttributeError(f"no such thing of {len(facts.all)} facts in {group.cell}")

    whole = [replace(cause, weigh=raises) if cause.id == "rank-stuck" else cause for cause in causes.built()]
    monkeypatch.setattr(causes, "built", lambda: tuple(whole))
    ended = Evidence("E1", "rung", cell="host", data={"probe": "host", "rung": 1, "nproc": 1, "outcome": "failed", "says": "no"})
    stuck = Evidence("E2", "rung", cell="user_script@2", data={"probe": "user_script", "rung": 90, "nproc": 2, "outcome": "timed_out"})
    report = conclude([ended, stuck], "diagnose", "case")
    assert report.causes
    assert any("The cause rank-stuck failed in its weigh: AttributeError: no such thing of" in says for says in report.unexplained)
