"""All ranks import, or build, at the same moment and together exhaust the memory.

One process that imports torch, transformers and a native extension may hold a gigabyte; eight of them at once on a node, or in a
container with a limit, are killed, or fail with `std::bad_alloc`, although each alone succeeds.

It is recognised by the import probe: every import passed alone, and together with the other ranks some were killed or could not get
memory, while the sum is above the limit; in logs by several processes that got no memory while one of them imported. It is ruled out when the same import fails alone, or when all ranks passed together.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.starved_imports import MEMORY_WORDS, told_by_several
from trainprobe.causes.words import fix, listed, sentence, size
from trainprobe.facts import Facts, ImportTried, MemoryLimit
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _tried(scene: Scene, how: str) -> tuple[ImportTried, ...]:
    return tuple(fact for fact in scene.facts.of(ImportTried) if fact.how == how)


def _starved(fact: ImportTried) -> bool:
    return fact.outcome == "oom_killed" or any(word in f"{fact.error_type} {fact.error}" for word in MEMORY_WORDS)


def _together_bytes(scene: Scene) -> int:
    """What all ranks need at once: the heaviest import alone, times the ranks. Imports share pages, so the heaviest counts, not the sum."""
    alone = [fact.rss_bytes for fact in _tried(scene, "alone") if fact.rss_bytes]
    return max(alone, default=0) * max(scene.group.world_size, scene.plan.nproc, 1)


def _limit(scene: Scene) -> MemoryLimit | None:
    limits = [fact for fact in scene.facts.of(MemoryLimit) if fact.limit_bytes]
    return min(limits, key=lambda fact: fact.limit_bytes or 0, default=None)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    alone, together = _tried(scene, "alone"), _tried(scene, "together")
    yield from told_by_several(scene)
    if group.probe != "import_memory" or not together:
        return
    bad = [fact for fact in together if fact.outcome in ("failed", "crashed", "oom_killed")]
    starved = [fact for fact in bad if _starved(fact)]
    guilty = [fact for fact in alone if fact.outcome in ("failed", "crashed", "oom_killed", "timed_out")]
    if guilty:
        yield weighing(-26, "probe-outcome", f"`import {guilty[0].module}` does not pass alone either", *guilty)
        return
    if not bad and all(fact.outcome == "passed" for fact in together):
        yield weighing(-26, "probe-outcome", f"All {len(together)} imports passed together as well", *together)
        return
    passed = [fact for fact in alone if fact.outcome == "passed"]
    if bad and passed:
        points = 26 if starved else 10  # without a word of memory the ranks may be in each other's way in some other manner
        names = listed(sorted({f"rank {fact.rank}" if fact.rank is not None else fact.module for fact in bad})[:4])
        alone_says = f"`import {passed[0].module}`" if len(passed) == 1 else f"Each of {len(passed)} imports"
        says = f"{alone_says} passed alone; together {names} did not ({bad[0].outcome})"
        yield weighing(points, "probe-outcome", says, *passed, *bad)
    limit, need = _limit(scene), _together_bytes(scene)
    if limit is not None and need and bad:
        if need > (limit.limit_bytes or 0):
            yield weighing(10, "environment-and-limits", f"Together they need {size(need)}, the limit is {size(limit.limit_bytes)}", limit, *passed)
        elif need * 2 < (limit.limit_bytes or 0):
            yield weighing(-10, "environment-and-limits", f"Together they need only {size(need)} of {size(limit.limit_bytes)}", limit, *passed)
    rise = next((fact for fact in facts.of(MemoryLimit, cell=group.cell) if (fact.oom_kill_rise or 0) > 0), None)
    if rise is not None and bad:
        yield weighing(10, "host-pressure", f"The cgroup counted {rise.oom_kill_rise} out-of-memory kills meanwhile", rise)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    limit, need = _limit(scene), _together_bytes(scene)
    modules = listed(sorted({fact.module for fact in _tried(scene, "alone") if fact.module})[:3]) or "the job's modules"
    told = next(told_by_several(scene), None) if not _tried(scene, "together") else None
    if told is not None:
        return sentence(f"The ranks import at once and run out of memory: {told.says}")
    numbers = f": they need {size(need)} and the limit is {size(limit.limit_bytes)}" if limit is not None and need else ""
    return sentence(f"All {max(group.world_size, scene.plan.nproc)} ranks import {modules} at once and run out of memory{numbers}; one alone succeeds")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    limit, need = _limit(scene), _together_bytes(scene)
    more = (
        f"ask for at least {size(need * 1.25)} for {max(group.world_size, scene.plan.nproc)} ranks (now {size(limit.limit_bytes)})"
        if limit is not None and need
        else ""
    )
    return (
        fix(
            scene,
            "Import one after the other",
            "with filelock.FileLock('/tmp/import.lock'): import the heavy module",
            "stagger the ranks: time.sleep(int(os.environ['LOCAL_RANK']))",
        ),
        fix(scene, "Give the job more memory, or start fewer ranks", more or "raise the job's memory request", who="admin", risk="needs-admin"),
        fix(scene, "Import less", "build extensions and caches beforehand; import what only rank 0 needs on rank 0"),
    )


CAUSE = Cause(
    id="import-storm",
    title="All ranks import at once and run out of memory",
    means="All ranks import or build at the same moment and exhaust memory, although each alone succeeds.",
    telling="Each import passed alone; together some were killed or got no memory, and their sum is above the limit.",
    modes=("check", "crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only import_memory with fewer ranks",
    refines="host-oom-killed",
)
