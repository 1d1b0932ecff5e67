"""Groups of one job that are parts of one world are judged as one."""

from __future__ import annotations

from trainprobe.facts import Job, JobRank, read
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject


def step(number: int, rank: int, *, port: str = "29500", world: int = 3) -> Evidence:
    """A step of SLURM with one rank, on a node of its own."""
    data = {
        "host": f"node{number}",
        "world_size": world,
        "world_size_source": "environment",
        "ranks": [{"pid": 30, "rank": rank, "rank_source": "environment"}],
        "environment": {str(rank): {"MASTER_ADDR": "node0", "MASTER_PORT": port}},
    }
    subject = Subject("job", host=f"node{number}")
    return Evidence(f"E{number}", "job", subject, f"job#step{number}", data=data)


def test_steps_that_meet_at_one_address_are_one_world() -> None:
    facts = read([step(number, number) for number in range(3)])

    (whole,) = facts.of(Job)
    assert (whole.cell, whole.absent, whole.hosts) == (
        "job#step0",
        (),
        ("node0", "node1", "node2"),
    )
    assert [one.rank for one in facts.of(JobRank)] == [0, 1, 2]


def test_steps_of_another_address_size_or_the_same_ranks_are_apart() -> None:
    others = [step(1, 1, port="29501"), step(2, 1, world=4), step(3, 0)]

    facts = read([step(0, 0), *others])

    assert len(facts.of(Job)) == 4
