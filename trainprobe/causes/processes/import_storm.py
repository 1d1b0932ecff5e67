"""All ranks import, or build, at the same moment and together exhaust the memory.

One process that imports torch, transformers and a native extension may hold a gigabyte; eight of them at once on a node, or in a
container with a limit, are killed, or fail with `std::bad_alloc`, although each alone succeeds.

It is recognised by the import probe: every import passed alone, and together with the other ranks some were killed or could not get
memory, while the sum is above the limit; or so many ranks as are planned would need more than there is. In logs it shows by several processes that
got no memory while one of them imported. It is ruled out when the same import fails alone, or when all ranks passed together.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.imports_together import BAD, foreseen, limit_of, modules, need_bytes, number, of_the_command, ranks_at_once, starved, tried
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.starved_imports import one_by_one, told_by_several
from trainprobe.causes.words import fix, listed, sentence, size
from trainprobe.facts import Facts, MemoryLimit
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from told_by_several(scene)
    yield from one_by_one(scene)
    yield from of_the_command(scene)
    if group.probe != "import_memory":
        return
    alone, together, ahead = tried(scene, "alone", "whole"), tried(scene, "together"), foreseen(scene)
    guilty = [fact for fact in alone if fact.outcome in (*BAD, "timed_out")]
    if (together or ahead) and guilty:
        yield weighing(-26, "probe-outcome", f"`import {guilty[0].module}` does not pass alone either", *guilty)
        return
    bad = [fact for fact in together if fact.outcome in BAD]
    if ahead is not None and not bad:
        yield weighing(26, "probe-outcome", ahead.says.rstrip("."), ahead)
    elif together and not bad and all(fact.outcome == "passed" for fact in together):
        yield weighing(-26, "probe-outcome", f"All {len(together)} imports passed together as well", *together)
        return
    passed = [fact for fact in alone if fact.outcome == "passed"]
    if bad and passed:
        points = 26 if any(starved(fact) for fact in bad) else 10  # without a word of memory the ranks may be in each other's way in some other manner
        names = listed(sorted({f"rank {fact.rank}" if fact.rank is not None else fact.module for fact in bad})[:4])
        alone_says = f"`import {passed[0].module}`" if len(passed) == 1 else f"Each of {len(passed)} imports"
        yield weighing(points, "probe-outcome", f"{alone_says} passed alone; together {names} did not ({bad[0].outcome})", *passed, *bad)
    if bad and (guarded := sorted({name for fact in bad for name in fact.guarded})):
        yield weighing(-10, "source", f"The script imports {listed(guarded)} under a lock already", *bad)
    limit, need = limit_of(scene), need_bytes(scene)
    if limit is not None and need and bad:
        if need > limit[0]:
            yield weighing(10, "environment-and-limits", f"Together they need {size(need)}, the limit is {size(limit[0])}", limit[1], *passed)
        elif need * 2 < limit[0]:
            yield weighing(-10, "environment-and-limits", f"Together they need only {size(need)} of {size(limit[0])}", limit[1], *passed)
    building = [fact for fact in (*alone, *together) if fact.compilers]
    if building and (bad or ahead):
        most = max(building, key=lambda fact: fact.build_bytes)
        says = f"The import of {most.module} starts {most.compilers} compilers at once with {size(most.build_bytes)}, on every rank"
        yield weighing(6, "process-state-and-locks", says, most)
    rise = next((fact for fact in facts.of(MemoryLimit, cell=group.cell) if (fact.oom_kill_rise or 0) > 0), None)
    if rise is not None and bad:
        yield weighing(10, "host-pressure", f"The cgroup counted {rise.oom_kill_rise} out-of-memory kills meanwhile", rise)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    limit, need, ahead = limit_of(scene), need_bytes(scene), foreseen(scene)
    told = next(told_by_several(scene), None) if not tried(scene, "together") else None
    if told is not None:
        return sentence(f"The ranks import at once and run out of memory: {told.says}")
    what = listed(modules(scene)) or "the job's modules"
    if ahead is not None and not any(fact.outcome in BAD for fact in tried(scene, "together")):
        numbers = f"they need {size(number(ahead.details, 'need_bytes'))} and the limit is {size(number(ahead.details, 'limit_bytes'))}"
        return sentence(
            f"{ranks_at_once(scene)} ranks that import {what} at once will run out of memory: {numbers}; {max(group.world_size, scene.plan.nproc)} fit"
        )
    numbers = f": they need {size(need)} and the limit is {size(limit[0])}" if limit is not None and need else ""
    return sentence(f"All {ranks_at_once(scene)} ranks import {what} at once and run out of memory{numbers}; one alone succeeds")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    limit, need = limit_of(scene), need_bytes(scene)
    names = ", ".join(modules(scene)) or "HEAVY_MODULE"
    python = scene.plan.interpreter_path or "python"
    more = f"ask for at least {size(need * 1.25)} for {ranks_at_once(scene)} ranks (now {size(limit[0])})" if limit is not None and need else ""
    lock = fix(
        scene,
        "Import one after the other",
        f"import trainprobe; with trainprobe.import_lock(): import {names}",
        f"{python} -m pip install --no-deps trainprobe   (standard library only; where the job's Python has it not)",
    )
    started = max((fact.compilers for fact in tried(scene, "alone", "whole", "together")), default=0)
    jobs = max(1, started // 2)
    builds = fix(
        scene,
        "Build beforehand, and with fewer compilers",
        f"MAX_JOBS={jobs} {python} -c 'import {names}'   (once, before the ranks start; the build is then found in TORCH_EXTENSIONS_DIR)",
        f"export MAX_JOBS={jobs}",
    )
    memory = fix(scene, "Give the job more memory, or start fewer ranks", more or "raise the job's memory request", who="admin", risk="needs-admin")
    less = fix(scene, "Import less", "import what only rank 0 needs on rank 0; build extensions and caches beforehand")
    return (lock, builds, memory) if started else (lock, memory, less)


CAUSE = Cause(
    id="import-storm",
    title="All ranks import at once and run out of memory",
    means="All ranks import or build at the same moment and exhaust memory, although each alone succeeds.",
    telling="Each import passed alone; together some were killed or got no memory, or the planned ranks would need more than there is.",
    modes=("check", "crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only import_memory with fewer ranks",
    refines="host-oom-killed",
)
