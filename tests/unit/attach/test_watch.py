"""How long a watch lasts: until Ctrl-C, the end of the job, or the last look that a case holds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainprobe.attach import visit
from trainprobe.attach.pace import Pace
from trainprobe.attach.visit import MOST_LOOKS, Visit, asked_s


def request(**given: Any) -> Any:
    return SimpleNamespace(
        **{"watch_s": None, "times": None, "deep": False, "trigger_dump": False, **given}
    )


@pytest.mark.parametrize(("times", "looks"), [(None, MOST_LOOKS), (3, 3)])
def test_looks_that_take_longer_than_their_pause_do_not_end_a_watch(
    times: int | None, looks: int
) -> None:
    a_slow_look_s = 10.0
    assert asked_s(request(watch_s=1.0, times=times), Pace()) >= looks * (1.0 + a_slow_look_s)


def test_without_a_watch_nothing_is_added() -> None:
    assert asked_s(request(), Pace()) == 0.0


def test_a_watch_says_that_its_case_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "MOST_LOOKS", 4)
    said: list[str] = []
    lives = SimpleNamespace(over=lambda: False, ended={})
    rounds = SimpleNamespace(number=2, ranks=[], steps=lambda: False)

    def look(*, again: bool) -> None:
        assert again
        rounds.number += 1

    watch: Any = SimpleNamespace(
        request=request(watch_s=0.0),
        interruption=SimpleNamespace(asked=False),
        progress=SimpleNamespace(note=said.append),
        lives=lives,
        rounds=rounds,
        pace=Pace(),
        _hurry=lambda: False,
        _pause=lambda _: None,
        _round=look,
    )
    monkeypatch.setattr(visit, "moves_line", lambda *_: "moves")
    Visit._watch(watch)
    assert len(said) == 3
    assert said[-1] == "4 looks are in the case: a watch takes no more"
