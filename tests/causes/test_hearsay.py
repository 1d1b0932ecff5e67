"""Whose printed words are last words: a rank's, once it is gone, and not once its worker is."""

from __future__ import annotations

import pytest

from trainprobe.causes.hearsay import SUPPORT, Hearsay
from trainprobe.causes.scene import weighing
from trainprobe.facts import Facts, Job, Output, RankEnding
from trainprobe.model.diagnosis import Weighing
from trainprobe.waits import SuspectGroup

GROUP = SuspectGroup("job", "job", (0,), "stuck-inside", "rank 0 stands", "hang", world_size=2)


@pytest.mark.parametrize(("role", "counts"), [("rank", 26), ("loader-worker", SUPPORT)])
def test_the_words_of_a_rank_whose_worker_ended_are_not_its_last(role: str, counts: int) -> None:
    said = Output(("E1",), "job", 0, tail="ConnectionError: refused")
    ended = RankEnding(("E2",), "job", 0, how="exited", code=1, role=role)
    heard = Hearsay(Facts([Job((), "job"), said, ended]), GROUP)

    assert heard._softly(_full(said)).points == counts


def _full(said: Output) -> Weighing:
    return weighing(26, "suspects-log", "it said so", said)
