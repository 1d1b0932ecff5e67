"""Pages of golden cases and of reports made by hand."""

from __future__ import annotations

import functools
from dataclasses import replace

from tests.cases.expectation import CASES
from tests.unit.report import handmade
from tests.unit.report.page.dom import Page
from trainprobe.facts import read
from trainprobe.facts.run_values import run_values
from trainprobe.model.diagnosis import (
    Cascade,
    Expiry,
    Killing,
    Link,
    RankRow,
    Report,
    StackBranch,
    StackClass,
    Stacks,
    World,
)
from trainprobe.model.evidence import Evidence
from trainprobe.pipelines import explain
from trainprobe.report.comparison import with_comparison
from trainprobe.report.page.document import page_of
from trainprobe.report.page.exhibits import Exhibits, exhibits_of


@functools.cache
def judged(name: str) -> tuple[Report, tuple[Evidence, ...]]:
    evidence: list[Evidence] = []
    return explain(str(CASES / name), None, None, evidence), tuple(evidence)


@functools.cache
def since(before: str, after: str) -> Report:
    """The report of one golden case, compared with that of another."""
    (old, old_records), (new, new_records) = judged(before), judged(after)
    ran_before, ran_after = (run_values(read(records)) for records in (old_records, new_records))
    return with_comparison(old, new, ran_before, ran_after, f"./{before}")


@functools.cache
def exhibits(name: str) -> Exhibits:
    report, evidence = judged(name)
    return exhibits_of(report, evidence)


@functools.cache
def page(name: str) -> Page:
    return Page(page_of(judged(name)[0], exhibits(name)))


def large(count: int, each: int = 8, stuck: int = 77) -> Report:
    """A job of so many ranks, one of which holds up the others."""
    others = [rank for rank in range(count) if rank != stuck]
    said = f"ranks 0-{stuck - 1} and {stuck + 1}-{count - 1}"
    rows = tuple(
        RankRow(
            rank,
            f"node{rank // each:04d}",
            40_000 + rank,
            "waiting",
            "cache.py:41 in update" if rank == stuck else "train.py:88 in step",
            "the lock on /nfs/cache/ds.lock" if rank == stuck else f"rank {stuck}",
            61.25,
            "fcntl.flock(file)" if rank == stuck else "dist.all_reduce(loss)",
        )
        for rank in range(count)
    )
    cause = replace(
        handmade.HUNG.causes[0],
        ranks=(stuck,),
        hosts=(f"node{stuck // each:04d}",),
        chain=(
            Link(said, f"rank {stuck}", "wait in all_reduce for"),
            Link(f"rank {stuck}", "the lock on /nfs/cache/ds.lock", "wants"),
        ),
    )
    tree = (
        StackBranch(
            f"0-{count - 1}",
            "train.py:120 in <module>",
            (
                StackBranch(f"0-{stuck - 1},{stuck + 1}-{count - 1}", "train.py:88 in step"),
                StackBranch(str(stuck), "cache.py:41 in update"),
            ),
        ),
    )
    classes = (StackClass(str(stuck), ("train.py:120 in <module>", "cache.py:41 in update")),)
    return replace(
        handmade.HUNG,
        world=World(count, rows),
        causes=(cause,),
        cascade=(Cascade(tuple(others), "", 0),),
        stacks=Stacks(classes, tree),
        expiry=(Expiry("the group's timeout", 1700.0, says="28 min left", source="torch"),),
        killing=Killing("/ckpt/7", 120.0, "2 min of work would be lost"),
        extra={"world_seen": "world complete", "pid": 48213},
    )
