"""How long a visit looks on, by what its looks have shown."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainprobe.attach import visit
from trainprobe.attach.pace import Clock, Pace
from trainprobe.case import Case
from trainprobe.model.request import AttachRequest
from trainprobe.stacks.arrivals import Arrivals


def late(rounds: int) -> Arrivals:
    """Rank 1 is last in all rounds, and the other waits for it most of the time."""
    return Arrivals((0, 1), 2.0, {0: 0, 1: rounds}, {1: 1.8}, inside_s={0: 1.8, 1: 0.0})


@pytest.mark.parametrize(
    ("shows", "spans"),
    [
        ([Arrivals((0, 1), 2.0, {0: 3, 1: 3}, {0: 0.2, 1: 0.2})], 1),
        ([late(6)], 1),
        ([late(2), late(5)], 2),
        ([late(0), late(1)], 2),
    ],
    ids=["in turns", "settled at once", "settled by more", "never settled"],
)
def test_samples_go_on_while_one_rank_seems_late(
    monkeypatch: pytest.MonkeyPatch, shows: list[Arrivals], spans: int
) -> None:
    monkeypatch.setattr(visit, "arrivals_of", lambda taken: taken)
    monkeypatch.setattr(visit, "by_rank", lambda *_: {})
    monkeypatch.setattr(visit, "all_stacks", lambda _: [])
    notes: list[str] = []
    left = iter(shows)
    one = SimpleNamespace(
        pace=Pace(),
        clock=SimpleNamespace(left_s=30.0),
        request=AttachRequest(),
        rounds=SimpleNamespace(load=lambda: False),
        progress=SimpleNamespace(note=notes.append),
        _no_time=lambda *_: False,
        _take_samples=lambda _: next(left),
        _read_lines_of=lambda *_: None,
    )

    visit.Visit._sample(one)  # type: ignore[arg-type] # all that it asks of a visit

    assert len(notes) == spans
    assert all("sampling them for" in note for note in notes)

    left, one.request = iter(shows), AttachRequest(watched=True)
    visit.Visit._sample(one)  # type: ignore[arg-type] # as above
    assert len(notes) == spans + 1, "another look comes"


def test_who_watches_the_job_sees_himself_whether_a_pause_goes_on() -> None:
    slept = iter([4.0, 7.0, None, 4.0])
    looks: list[float] = []

    def again(after_s: float, _: str) -> bool:
        looks.append(after_s)
        return True

    one = SimpleNamespace(
        pace=Pace(),
        rounds=SimpleNamespace(pausing_s=lambda: next(slept)),
        request=AttachRequest(),
        _again=again,
    )
    visit.Visit._outlast_pause(one)  # type: ignore[arg-type] # all that it asks of a visit
    assert len(looks) == 2
    one.request = AttachRequest(watched=True)
    visit.Visit._outlast_pause(one)  # type: ignore[arg-type] # as above
    assert len(looks) == 2


def test_a_look_that_finds_no_time_is_told_of(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    one = SimpleNamespace(
        case=case,
        cell="job",
        clock=Clock(13.5, began=time.monotonic() - 20),
        lives=SimpleNamespace(over=lambda: False),
        interruption=SimpleNamespace(asked=False),
        cut={},
        _hurry=lambda: True,
    )

    assert visit.Visit._no_time(one, "samples of the ranks")  # type: ignore[arg-type] # as above
    visit.Visit._say_what_was_cut(one)  # type: ignore[arg-type] # as above

    (told,) = case.evidence
    assert told.outcome == "timed_out"
    assert "were over before samples of the ranks" in told.reason


def test_all_looks_obey_one_deadline_and_leave_time_to_bring_in_the_last() -> None:
    clock = Clock(13.5, kept_s=1.0, began=time.monotonic() - 12.0)

    assert clock.at_most(5.0) == pytest.approx(0.5, abs=0.05)
    assert clock.at_last(5.0) == pytest.approx(1.5, abs=0.05)
    assert Pace().whole_s < 15.0, "what is left is for the judgement"
