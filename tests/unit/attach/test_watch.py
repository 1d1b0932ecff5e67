"""How long a watch lasts: until Ctrl-C, the end of the job, or the last look that was asked for."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainprobe.attach import visit
from trainprobe.attach.pace import Pace
from trainprobe.attach.visit import Visit, asked_s, collecting_cycles
from trainprobe.case import Case
from trainprobe.collect.members import Member


def request(**given: Any) -> Any:
    return SimpleNamespace(
        **{"watch_s": None, "times": None, "deep": False, "trigger_dump": False, **given}
    )


@pytest.mark.parametrize(("times", "looks"), [(None, 1_000_000), (3, 3)])
def test_looks_that_take_longer_than_their_pause_do_not_end_a_watch(
    times: int | None, looks: int
) -> None:
    a_slow_look_s = 10.0
    assert asked_s(request(watch_s=1.0, times=times), Pace()) >= looks * (1.0 + a_slow_look_s)


def test_without_a_watch_nothing_is_added() -> None:
    assert asked_s(request(), Pace()) == 0.0


def test_a_watch_goes_on_and_leaves_out_workers_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    shortened: list[list[Member]] = []
    rank, worker = Member(0, 2**22 - 3, "rank", 1), Member(0, 2**22 - 3, "loader-worker", 1)
    rounds = SimpleNamespace(number=2, ranks=[], steps=lambda: False, shorten=shortened.append)
    seen: list[list[Member]] = []

    def look(*, again: bool) -> None:
        assert again
        seen.append(list(watch.members))
        rounds.number += 1

    with Case.create(str(tmp_path / "case"), "attach", []) as case:
        watch: Any = SimpleNamespace(
            case=case,
            cell="job",
            members=[rank, worker],
            request=request(watch_s=0.0),
            interruption=SimpleNamespace(asked=False),
            progress=SimpleNamespace(note=said.append),
            lives=SimpleNamespace(over=lambda: False, ended={}),
            rounds=rounds,
            pace=Pace(),
            _hurry=lambda: rounds.number >= 2000,
            _pause=lambda _: None,
            _round=look,
        )
        watch._shorten = lambda *given: Visit._shorten(watch, *given)
        monkeypatch.setattr(visit, "moves_line", lambda *_: "moves")
        Visit._watch(watch)
    assert rounds.number == 2000
    assert len(said) == 1998
    assert seen[:2] == [[rank, worker], [rank]]
    assert shortened[:2] == [[worker], []]


class Circle:
    def __init__(self) -> None:
        self.itself = self


def test_cycles_of_a_watch_are_collected_although_the_command_line_does_so_seldom() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    alive: weakref.WeakSet[Circle] = weakref.WeakSet()
    try:
        with collecting_cycles():
            for _ in range(5000):
                alive.add(Circle())
            assert len(alive) < 2000
        assert gc.get_threshold() == (200_000, 50, 100)
        assert gc.get_freeze_count() == 0
    finally:
        gc.set_threshold(*usual)
