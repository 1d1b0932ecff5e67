"""What the output of a live job says of a rank that has no process any more."""

from __future__ import annotations

import pytest

from trainprobe.facts import Job, JobRank, RankEnding
from trainprobe.facts.printed_endings import join_printed_endings, parse_printed_endings
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.subjects import Subject

CELL = "job"


def output(text: str) -> Evidence:
    data = {"path": "/job/out.txt", "head": "", "tail": text, "left_out_bytes": 0}
    subject = Subject("process", "here", None, role="launcher")
    return Evidence("E7", "output", subject, CELL, data=data)


def ends(text: str, absent: tuple[int, ...] = (1,)) -> list[tuple[int | None, str, int | None]]:
    facts: list[Fact] = [
        Job((), CELL, None, world_size=3, absent=absent),
        JobRank((), CELL, 0, pid=100),
        JobRank((), CELL, 2, pid=102),
        *parse_printed_endings(output(text)),
    ]
    found = [one for one in join_printed_endings(facts) if isinstance(one, RankEnding)]
    return [(one.rank, one.signal_name, one.code) for one in found]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("run.sh: line 4:   101 Killed    python train.py", (1, "SIGKILL", None)),
        ("run.sh: line 4:   101 Segmentation fault (core dumped) python train.py", (1, "SIGSEGV", None)),
        ("worker 1 pid 101 uses 9000 MiB > 8000, killing it", (1, "", None)),
        ("guard: pid 101 went over its share and was terminated", (1, "", None)),
        ("[agent] killed rank 1: no heartbeat for 60 s", (1, "", None)),
        ("sent SIGTERM to pid 101, and SIGKILL after 30 s", (1, "SIGTERM", None)),
        ("rank 1 exited with code 3", (1, "", 3)),
        ("process 1 terminated with signal SIGKILL", (1, "SIGKILL", None)),
    ],
)  # fmt: skip
def test_a_line_that_tells_of_the_rank_that_is_gone(
    line: str, found: tuple[int, str, int | None]
) -> None:
    assert ends(f"step 3 loss 0.1\n{line}\nstep 4 loss 0.1\n") == [found]


@pytest.mark.parametrize(
    "line",
    [
        "run.sh: line 4:   100 Killed    python train.py",
        "worker 2 pid 102 uses 9000 MiB > 8000, killing it",
        "rank 0 exited with code 3",
        "rank 1: no data left, terminating",
        "DataLoader worker (pid 101) is killed by signal: Killed.",
        "step 4 killed the learning rate",
    ],
)
def test_a_line_that_tells_of_somebody_alive_or_of_nobody(line: str) -> None:
    assert ends(f"{line}\n") == []


def test_of_two_ranks_that_are_gone_a_line_without_a_number_says_neither() -> None:
    assert ends("run.sh: line 4:   101 Killed    python train.py\n", (1, 2)) == []
