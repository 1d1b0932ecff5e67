"""Concluding comes to a report even where one cause of the catalogue is at fault."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import trainprobe.attach
from trainprobe import causes, pipelines
from trainprobe.case import Case
from trainprobe.causes.scene import Scene
from trainprobe.model.diagnosis import Report, Weighing
from trainprobe.model.evidence import Evidence
from trainprobe.model.progress import Silence
from trainprobe.model.request import AttachRequest
from trainprobe.pipelines import conclude, explain


def test_a_fault_in_one_cause_does_not_cost_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(scene: Scene) -> tuple[Weighing, ...]:
        raise AttributeError(f"no such thing of {len(scene.facts.all)} facts in {scene.cell}")

    whole = [
        replace(cause, weigh=raises) if cause.id == "rank-stuck" else cause
        for cause in causes.built()
    ]
    monkeypatch.setattr(causes, "built", lambda: tuple(whole))
    ended = Evidence(
        "E1",
        "rung",
        cell="host",
        data={"probe": "host", "rung": 1, "nproc": 1, "outcome": "failed", "says": "no"},
    )
    stuck = Evidence(
        "E2",
        "rung",
        cell="user_script@2",
        data={"probe": "user_script", "rung": 90, "nproc": 2, "outcome": "timed_out"},
    )
    report = conclude([ended, stuck], "diagnose", "case")
    assert report.causes
    assert any(
        "The cause rank-stuck failed in its weigh: AttributeError: no such thing of" in says
        for says in report.unexplained
    )


def test_a_long_judgement_is_told_of_and_a_short_one_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Listener(Silence):
        def __init__(self) -> None:
            self.told: list[str] = []

        def note(self, says: str) -> None:
            self.told.append(says)

    with Case.create(str(tmp_path / "case"), "diagnose", ("trainprobe",)) as case:
        case.add(
            "rung",
            cell="host",
            data={"probe": "host", "rung": 1, "nproc": 1, "outcome": "passed", "says": ""},
        )
    listener = Listener()
    explain(str(tmp_path / "case"), progress=listener)
    assert [says for says in listener.told if says] == []
    whole = pipelines.conclude

    def slowly(
        evidence: Iterable[Evidence], command: str, case: str, notes: Iterable[str] = ()
    ) -> Report:
        time.sleep(1.3)
        return whole(evidence, command, case, notes)

    monkeypatch.setattr(pipelines, "conclude", slowly)
    explain(str(tmp_path / "case"), progress=listener)
    assert listener.told[-2:] == ["Judging what was found: 1 s", ""]


@pytest.mark.parametrize(
    ("asked", "open_", "deep"), [(True, True, 1), (True, False, 0), (False, True, 0)]
)
def test_deep_auto_goes_inside_the_ranks_only_where_the_plain_look_leaves_it_open(
    asked: bool, open_: bool, deep: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looks = []
    monkeypatch.setattr(trainprobe.attach, "find_target", lambda *_: None)
    monkeypatch.setattr(trainprobe.attach, "look_at_job", lambda *_, **__: looks.append("plain"))
    monkeypatch.setattr(trainprobe.attach, "look_deeper", lambda *_, **__: looks.append("deep"))
    monkeypatch.setattr(pipelines, "_deep_would_settle", lambda _: open_)
    request = AttachRequest(pid=1, deep_if_open=asked, case=str(tmp_path / "case"))
    pipelines.attach(request, Silence())
    assert looks == ["plain", *["deep"] * deep]
