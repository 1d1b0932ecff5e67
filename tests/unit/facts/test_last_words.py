"""Which tracebacks that a live job's ranks printed ended them."""

from __future__ import annotations

import pytest

from trainprobe.facts import Facts, Job, MainThread, RankException
from trainprobe.facts.last_words import gone_ranks, join_last_words
from trainprobe.stacks.frames import Frame
from trainprobe.waits.live_standings import live_world

CELL = "job"


@pytest.mark.parametrize(
    ("in_atexit", "last_words", "handled"),
    [(True, True, False), (True, False, True), (False, True, True)],
    ids=["shuts down", "caught before", "trains on"],
)
def test_who_shuts_down_has_not_survived_its_last_traceback(
    *, in_atexit: bool, last_words: bool, handled: bool
) -> None:
    (*_, found) = join_last_words(
        [
            Job((), CELL, None, world_size=2),
            MainThread((), CELL, 1, pid=70, in_atexit=in_atexit),
            RankException((), CELL, 1, type="ValueError", last_words=last_words),
        ]
    )

    assert isinstance(found, RankException)
    assert found.handled is handled


@pytest.mark.parametrize(
    ("shuts_down", "rank", "handled"),
    [(True, 1, False), (False, None, True)],
    ids=["one shuts down", "all train on"],
)
def test_what_an_except_printed_last_is_of_the_rank_that_shuts_down(
    *, shuts_down: bool, rank: int | None, handled: bool
) -> None:
    (*_, found) = join_last_words(
        [
            Job((), CELL, None, world_size=2),
            MainThread((), CELL, 0, pid=69),
            MainThread((), CELL, 1, pid=70, in_atexit=shuts_down),
            RankException((), CELL, None, type="ValueError", role="", ends_output=True),
        ]
    )

    assert isinstance(found, RankException)
    assert (found.rank, found.handled) == (rank, handled)


@pytest.mark.parametrize(
    ("began_in", "whose"),
    [("/job/train.py", 0), ("/job/monitor.py", None)],
    ids=["of the training", "of another program"],
)
def test_a_traceback_of_the_training_is_of_the_only_rank_that_is_not_here(
    began_in: str, whose: int | None
) -> None:
    at = (Frame("main", "/job/train.py", 9), Frame("setup", "/job/train.py", 5))
    job = Job((), CELL, None, world_size=3, absent=(0,), elsewhere=True)
    facts = join_last_words(
        [
            job,
            MainThread((), CELL, 1, pid=70, frames=at),
            MainThread((), CELL, 2, pid=71, frames=at),
            RankException(
                (),
                CELL,
                None,
                type="OSError",
                last_words=True,
                frames=(Frame("main", began_in, 9),),
            ),
        ]
    )

    assert [one.rank for one in facts if isinstance(one, RankException)] == [whose]
    assert gone_ranks(facts, job) == ({whose} - {None})
    assert live_world(Facts(facts), job) == ((0, 1, 2) if whose == 0 else (1, 2))


@pytest.mark.parametrize(
    ("file", "child"), [("/job/server.py", "server.py"), ("/job/train.py", "")]
)
def test_a_program_that_a_rank_started_has_not_survived_its_traceback(
    file: str, child: str
) -> None:
    (*_, found) = join_last_words(
        [
            Job((), CELL, None, world_size=2, script="/job/train.py"),
            RankException((), CELL, 1, type="ValueError", frames=(Frame("<module>", file, 9),)),
        ]
    )

    assert isinstance(found, RankException)
    assert (found.child, found.handled) == (child, True)
