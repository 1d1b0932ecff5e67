"""Facts of live jobs in few words, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene
from trainprobe.facts import Block, Facts, Job, JobRank, ProcessState, SourceSite, Thread
from trainprobe.facts.thread_places import join_threads
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame
from trainprobe.waits.live import live_view, live_views
from trainprobe.waits.situation import Situation

CELL = "job"
SITE = "/env/lib/python3.11/site-packages/"
STD = "/env/lib/python3.11/"
C10D = SITE + "torch/distributed/distributed_c10d.py"
MAIN = Frame("<module>", "/job/train.py", 99)
ALL_REDUCE = (MAIN, Frame("step", "/job/train.py", 88), Frame("all_reduce", C10D, 3252))
LOADER = SITE + "torch/utils/data/dataloader.py"


def job(world: int, *, absent: tuple[int, ...] = (), elsewhere: bool = False) -> Job:
    return Job(
        ("E1",),
        CELL,
        None,
        launcher="torchrun",
        launcher_pid=9,
        world_size=world,
        host="node7",
        absent=absent,
        elsewhere=elsewhere,
    )


def own(name: str, line: int) -> tuple[Frame, ...]:
    """A stack that ends in the user's own function."""
    return (MAIN, Frame(name, "/job/train.py", line))


def site(line: int, text: str, *blocks: tuple[str, str], file: str = "/job/train.py") -> SourceSite:
    return SourceSite(
        ("E2",),
        CELL,
        None,
        file,
        line,
        "f",
        text,
        tuple(Block(kind, line - 1, head) for kind, head in blocks),
    )


def process(
    pid: int,
    *looks: Sequence[Frame],
    rank: int | None = None,
    role: str = "rank",
    state: str = "S",
    age_s: float | None = 20.0,
    gil: bool = False,
    **more: object,
) -> list[Fact]:
    """A process seen once per stack in `looks`; without any its stack was refused."""
    ids = (f"E{pid}",)
    seen = [
        Thread(
            ids,
            CELL,
            rank,
            pid=pid,
            role=role,
            look=number + 1,
            main=True,
            frames=tuple(frames),
            owns_gil=gil,
            at=1000.0 + 2 * number,
        )
        for number, frames in enumerate(looks)
    ]
    cpu_s = 0.9 if state == "R" else 0.0
    about = ProcessState(
        ids,
        CELL,
        rank,
        pid=pid,
        role=role,
        state=state,
        looks=2,
        cpu_s=cpu_s,
        all_cpu_s=cpu_s,
        looked_s=1.0,
        cpu_moved=state == "R",
        asleep_s=age_s,
    )
    return [*seen, replace(about, **more)]  # type: ignore[arg-type] # fields of ProcessState


def rank(number: int, *looks: Sequence[Frame], **more: object) -> list[Fact]:
    pid = 100 + number
    return [
        JobRank((f"E{pid}",), CELL, number, pid=pid),
        *process(pid, *(looks or (ALL_REDUCE, ALL_REDUCE)), rank=number, **more),  # type: ignore[arg-type]
    ]  # as above


def unreadable(number: int, **more: object) -> list[Fact]:
    """A rank whose stack was refused."""
    return [
        JobRank((), CELL, number, pid=100 + number),
        *process(100 + number, rank=number, **more),  # type: ignore[arg-type]
    ]  # as above


def facts_of(*facts: Fact | list[Fact]) -> Facts:
    flat: list[Fact] = []
    for fact in facts:
        flat += fact if isinstance(fact, list) else [fact]
    return Facts(join_threads(flat))


def view(*facts: Fact | list[Fact]) -> Situation:
    (found,) = live_views(facts_of(*facts))
    return found


def scene_of(*facts: Fact | list[Fact]) -> Scene:
    """What a cause sees of a job that has one group of suspects."""
    known = facts_of(*facts)
    (group,) = live_view(known, known.of(Job)[0]).groups
    return Scene(known, group)


def total(cause: Cause, scene: Scene) -> int:
    """All points that a cause has for and against it, without regard to families."""
    return sum(one.points for one in cause.weigh(scene))
