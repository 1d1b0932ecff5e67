"""What a healing knob says about causes: for, against, and nothing where it did not take effect."""

from __future__ import annotations

import pytest

from trainprobe import causes
from trainprobe.causes.healing import healing, hinted, meanings
from trainprobe.causes.priors import load_priors
from trainprobe.causes.scene import Scene
from trainprobe.facts import Facts, KnobTried, MainThread, Plan, ProcessState, Rung
from trainprobe.judge import judge
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits import SuspectGroup

BUILT = {cause.id: cause for cause in causes.built()}
CELL = "user_script@2x1000"


def cell(ranks: int, rows: int | None, outcome: str, knob: str = "", began: float = 0.0) -> Rung:
    name = (
        f"user_script@{ranks}"
        + (f"x{rows}" if rows is not None else "")
        + (f"#{knob}" if knob else "")
    )
    of_cell = name.partition("#")[0] if knob else ""
    return Rung(
        ("E1",),
        name,
        None,
        1000,
        "user_script",
        "Does it run?",
        ranks,
        outcome,
        2.0,
        rows=rows,
        knob=knob,
        of_cell=of_cell,
        began=began,
        stopped_because="stall" if outcome == "timed_out" else "ended",
    )


def knob(
    words: str, outcome: str, *, applied: bool | None = True, of_cell: str = CELL
) -> KnobTried:
    name, _, value = words.partition("=")
    return KnobTried(
        ("E9",), f"{of_cell}#{words}", None, words, name, value, of_cell, outcome, applied, 2.0
    )


GRID = (
    cell(1, 100, "passed"),
    cell(1, 1000, "passed"),
    cell(2, 100, "passed"),
    cell(2, 1000, "timed_out"),
)
GROUP = SuspectGroup(
    CELL, "user_script", (1,), "never-joined", "rank 1 has not arrived", "hang", world_size=2
)


def told(*facts: Fact) -> dict[str, int]:
    found = healing(
        Scene(Facts([Plan(nproc=2, ranks=(1, 2), rows=(100, 1000)), *GRID, *facts]), GROUP)
    )
    return {
        f"{id_}{'+' if one.points > 0 else '-'}": one.points
        for id_, weighings in found.items()
        for one in weighings
        if one.evidence == ("E9",)
    }


def test_every_meaning_is_about_a_cause_that_there_is() -> None:
    for name, meaning in meanings().items():
        assert set(meaning.heals) | set(meaning.heals_not) <= set(BUILT)
        assert bool(meaning.says) is ("=" in name)


def test_a_knob_that_heals_speaks_for_what_it_takes_away() -> None:
    found = told(knob("start=spawn", "passed"))

    assert (found["fork-inherited-lock+"], found["fork-thread-pool+"]) == (13, 10)
    assert "rank-conditional-collective+" not in found


def test_a_knob_that_does_not_heal_speaks_against_it_and_with_less_where_nobody_saw_it_take_effect() -> (
    None
):
    assert told(knob("start=spawn", "timed_out"))["fork-inherited-lock-"] == -13
    assert told(knob("start=spawn", "timed_out", applied=None))["fork-inherited-lock-"] == -6


@pytest.mark.parametrize(
    "fact",
    [
        knob("workers=0", "passed", applied=False),
        knob("workers=0", "skipped"),
        knob("workers=0", "not_measured"),
        knob(
            "workers=0", "crashed"
        ),  # it hung before: another failure says nothing about the first
        knob("learning_rate=0.1", "passed"),  # the user's own: nobody knows what it takes away
        knob("workers=0", "passed", of_cell="user_script@1x100"),  # a cell that passed
    ],
)
def test_what_is_no_experiment_on_this_failure_says_nothing(fact: KnobTried) -> None:
    assert told(fact) == {}


def test_a_failure_that_comes_and_goes_makes_healing_a_weak_hint() -> None:
    found = told(knob("again=1", "passed"), knob("start=spawn", "passed"))

    assert set(found.values()) == {3}


def test_sizes_speak_where_somebody_chose_them() -> None:
    chosen = healing(Scene(Facts([Plan(nproc=2, ranks=(1, 2), rows=(100, 1000)), *GRID]), GROUP))
    usual = [cell(1, None, "passed"), cell(2, None, "timed_out")]
    plain = SuspectGroup(
        "user_script@2", "user_script", (1,), "never-joined", "", "hang", world_size=2
    )

    assert {one.points for one in chosen["uneven-inputs"]} == {3, 6}
    assert all(
        one.points < 0
        for one in chosen["rendezvous-incomplete"]
        if "less data" in one.says or "the same ranks" in one.says
    )
    assert healing(Scene(Facts([Plan(nproc=2), *usual]), plain)) == {}
    assert "uneven-inputs" in healing(Scene(Facts([Plan(nproc=2, ranks=(1, 2)), *usual]), plain))


def test_the_climb_tells_nothing_about_another_rung() -> None:
    group = SuspectGroup(
        "gloo_control@2", "gloo_control", (), "stuck-inside", "", "hang", world_size=2
    )

    assert healing(Scene(Facts([*GRID, knob("start=spawn", "passed")]), group)) == {}


def test_what_only_a_knob_hints_at_is_listed_behind_unknown() -> None:
    facts = Facts(
        [
            Plan(nproc=2, ranks=(1, 2), rows=(100, 1000)),
            *GRID,
            *waiting(),
            cell(2, 1000, "passed", "workers=0"),
            knob("workers=0", "passed"),
        ]
    )

    placed = judge(facts, tuple(BUILT.values()), load_priors()).causes
    by_id = {cause.id: cause for cause in placed}

    assert not any(cause.named for cause in placed)
    assert "passes without loader workers (workers=0)" in next(
        by_id[id_].summary for id_ in by_id if id_ in hinted(Scene(facts, GROUP))
    )


def waiting() -> list[Fact]:
    frames = (Frame("f", "/job/train.py", 1),)
    thread = [
        MainThread(
            ("E2",),
            CELL,
            rank,
            pid=100 + rank,
            frames=frames,
            leaf="python-run",
            where="train.py:1 in f",
            moved=False,
            looks=2,
        )
        for rank in (0, 1)
    ]
    return [
        *thread,
        *(ProcessState(("E3",), CELL, rank, pid=100 + rank, state="S", looks=2) for rank in (0, 1)),
    ]
