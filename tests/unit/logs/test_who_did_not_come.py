"""Who is missing at torch's barrier of the start, by the words of those who wait there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain

WAITS = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {0}, key:"
    " store_based_barrier_key:{1} (world_size={2}, worker_count={3}, timeout=0:30:00)\n"
)


def waiting(folder: Path, came: Iterable[int], world: int, counted: int, key: int = 1) -> Report:
    path = folder / "job.log"
    path.write_text("".join(WAITS.format(rank, key, world, counted) for rank in came), "utf-8")
    return explain([str(path)])


def test_whom_all_others_wait_for_is_named(tmp_path: Path) -> None:
    report = waiting(tmp_path, (3, 0, 1, 5, 4), 6, 5)

    first = report.causes[0]
    assert (report.verdict, first.id, first.ranks) == ("hung", "rendezvous-incomplete", (2,))


@pytest.mark.parametrize(
    ("came", "world", "counted", "key", "cause"),
    [
        # one that it counts says nothing here, but somebody lacks
        ((3, 0, 1, 5), 6, 5, 1, "rendezvous-incomplete"),
        ((0,), 4, 1, 1, "unknown"),  # the first to come
        ((3, 0, 1, 5, 4), 6, 5, 2, "unknown"),  # a later group: all have started
    ],
)
def test_nobody_is_named_who_may_have_come(
    came: tuple[int, ...], world: int, counted: int, key: int, cause: str, tmp_path: Path
) -> None:
    report = waiting(tmp_path, came, world, counted, key)

    assert (report.verdict, report.causes[0].id) == ("hung", cause)
