"""Do earlier runs hold what this run needs? Then they are a trouble of their own, also where
every rung passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainprobe.facts import Facts, Gpu, Leftover, LeftoverLook, Plan
from trainprobe.facts.leftover_names import name_of, sum_of
from trainprobe.waits.suspects import SuspectGroup

# Below these shares the next run has what it needs: our own levels, in the order of what one rank
# of several takes.
MEMORY_SHARE = 0.1
CPU_SHARE = 0.25
GPU_SHARE = 0.05
LOCKS = (".lock", ".lck")
CACHES = ("/.cache/", "/huggingface/", "/torch_extensions/", "/.triton/")


@dataclass(frozen=True)
class Taken:
    """Something that this run needs too: `share` of all there is, None where it is there once.
    `by` are those that hold it.
    """

    what: Literal["port", "memory", "cpu", "gpu", "lock"]
    says: str
    by: tuple[Leftover, ...]
    share: float | None = None


def memory_of(row: Leftover) -> int:
    """Bytes, shared pages counted once in all where the kernel tells."""
    return row.pss_bytes if row.pss_bytes is not None else row.rss_bytes or 0


def taken(facts: Facts) -> tuple[Taken, ...]:
    """What earlier runs hold of what this run needs, above the levels that matter."""
    rows, look = facts.of(Leftover), facts.one(LeftoverLook)
    if not rows or look is None:
        return ()
    found = []
    listening = tuple(row for row in rows if look.port is not None and look.port in row.ports)
    if listening:
        found.append(
            Taken(
                "port",
                f"pid {listening[0].pid} listens on port {look.port}, at which this run is to meet",
                listening,
            )
        )
    held = sum(memory_of(row) for row in rows)
    if look.memory_bytes and held >= MEMORY_SHARE * look.memory_bytes:
        share = held / look.memory_bytes
        found.append(
            Taken(
                "memory", f"They hold {share:.0%} of the memory that this run may use", rows, share
            )
        )
    burnt = sum(row.cpu_share or 0.0 for row in rows)
    if look.cpus and burnt >= CPU_SHARE * look.cpus:
        found.append(
            Taken("cpu", f"They use {burnt:.1f} of {look.cpus:g} CPUs", rows, burnt / look.cpus)
        )
    found += _gpus(facts, rows)
    plan = facts.one(Plan)
    folders = tuple(
        folder.rstrip("/") + "/"
        for folder in (plan.cwd if plan else "", plan.script.rpartition("/")[0] if plan else "")
        if folder.rstrip("/")
    )
    for row in rows:
        of_run = [
            path
            for path in row.locks
            if path.startswith(folders)
            or path.endswith(LOCKS)
            or any(cache in path for cache in CACHES)
        ]
        if of_run:
            found.append(Taken("lock", f"pid {row.pid} holds the lock on {of_run[0]}", (row,)))
            break
    return tuple(found)


def _gpus(facts: Facts, rows: Sequence[Leftover]) -> list[Taken]:
    found = []
    totals = {gpu.index: gpu.memory_total_bytes for gpu in facts.of(Gpu)}
    for index in sorted({index for row in rows for index, _ in row.gpus}):
        by = tuple(row for row in rows if any(at == index for at, _ in row.gpus))
        used, total = (
            sum(used or 0 for row in by for at, used in row.gpus if at == index),
            totals.get(index),
        )
        share = used / total if total else None
        if share is None or share >= GPU_SHARE:
            found.append(
                Taken(
                    "gpu",
                    f"They hold {f'{share:.0%} of the memory' if share else 'memory'} of GPU"
                    f" {index}",
                    by,
                    share,
                )
            )
    return found


def leftover_groups(facts: Facts) -> tuple[SuspectGroup, ...]:
    """One group where earlier runs hold what this run needs."""
    found, look = taken(facts), facts.one(LeftoverLook)
    if not found or look is None:
        return ()
    rows = facts.of(Leftover)
    says = f"an earlier run of {name_of(look)} still lives: {sum_of(rows)}"
    return (
        SuspectGroup(
            cell="",
            probe="",
            ranks=(),
            how="failed-first",
            says=says,
            mode="check",
            evidence=look.evidence,
        ),
    )
