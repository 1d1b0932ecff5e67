"""Which tracebacks that a live job's ranks printed ended them."""

from __future__ import annotations

import pytest

from trainprobe.facts import Job, MainThread, RankException
from trainprobe.facts.last_words import join_last_words
from trainprobe.stacks.frames import Frame

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
