"""All ranks import, or build, at the same moment and together exhaust the memory.

One process that imports torch, transformers and a native extension may hold a gigabyte; eight of
them at once on a node, or in a container with a limit, are killed, or fail with `std::bad_alloc`,
although each alone succeeds.

It is recognised by the import probe: every import passed alone, and together with the other ranks
some were killed or could not get memory, while the sum is above the limit; or so many ranks as are
planned would need more than there is. In logs it shows by several processes that got no memory
while one of them imported. It is ruled out when the same import fails alone, or when all ranks
passed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.host_memory import REFUSED, killed
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, size, verb
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import statement
from trainprobe.facts import (
    FatalSignal,
    ImportTried,
    Measured,
    MemoryLimit,
    ProbeFailure,
    RankException,
    Rung,
)
from trainprobe.model.facts import Fact
from trainprobe.model.ranks import and_list


def _weigh(scene: Scene) -> Weighings:
    yield from told_by_several(scene)
    yield from one_by_one(scene)
    yield from of_the_command(scene)
    if scene.group.probe != "import_memory":
        return
    alone = tried(scene, "alone", "whole")
    together = tried(scene, "together")
    ahead = foreseen(scene)
    guilty = [fact for fact in alone if fact.outcome in (*BAD, "timed_out")]
    if (together or ahead) and guilty:
        yield weighing(
            -26, "probe-outcome", f"`import {guilty[0].module}` does not pass alone either", *guilty
        )
        return
    bad = [fact for fact in together if fact.outcome in BAD]
    if ahead is not None and not bad:
        yield weighing(26, "probe-outcome", ahead.says.rstrip("."), ahead)
    elif together and not bad and all(fact.outcome == "passed" for fact in together):
        yield weighing(
            -26, "probe-outcome", f"All {len(together)} imports passed together as well", *together
        )
        return
    passed = [fact for fact in alone if fact.outcome == "passed"]
    if bad and passed:
        # without a word of memory the ranks may be in each other's way in some other manner
        points = 26 if any(starved(fact) for fact in bad) else 10
        names = and_list(
            sorted({f"rank {fact.rank}" if fact.rank is not None else fact.module for fact in bad})[
                :4
            ]
        )
        alone_says = (
            f"`import {passed[0].module}`" if len(passed) == 1 else f"Each of {len(passed)} imports"
        )
        says = f"{alone_says} passed alone; together {names} did not ({bad[0].outcome})"
        yield weighing(points, "probe-outcome", says, *passed, *bad)
    if bad and (guarded := sorted({name for fact in bad for name in fact.guarded})):
        yield weighing(
            -10, "source", f"The script imports {and_list(guarded)} under a lock already", *bad
        )
    limit, need = limit_of(scene), need_bytes(scene)
    if limit is not None and need and bad:
        if need > limit[0]:
            says = f"Together they need {size(need)}, the limit is {size(limit[0])}"
            yield weighing(10, "environment-and-limits", says, limit[1], *passed)
        elif need * 2 < limit[0]:
            says = f"Together they need only {size(need)} of {size(limit[0])}"
            yield weighing(-10, "environment-and-limits", says, limit[1], *passed)
    building = [fact for fact in (*alone, *together) if fact.compilers]
    if building and (bad or ahead):
        most = max(building, key=lambda fact: fact.build_bytes)
        says = (
            f"The import of {most.module} starts {most.compilers} compilers at once with"
            f" {size(most.build_bytes)}, on every rank"
        )
        yield weighing(6, "process-state-and-locks", says, most)
    rise = next((fact for fact in scene.of(MemoryLimit) if (fact.oom_kill_rise or 0) > 0), None)
    if rise is not None and bad:
        says = f"The cgroup counted {rise.oom_kill_rise} out-of-memory kills meanwhile"
        yield weighing(10, "host-pressure", says, rise)


def _summary(scene: Scene) -> str:
    limit, need, ahead = limit_of(scene), need_bytes(scene), foreseen(scene)
    reported = next(told_by_several(scene), None) if not tried(scene, "together") else None
    if reported is not None:
        return f"The ranks import at once and run out of memory: {reported.says}"
    what = and_list(modules(scene)) or "the job's modules"
    if ahead is not None and not any(fact.outcome in BAD for fact in tried(scene, "together")):
        numbers = (
            f"they need {size(number(ahead.details, 'need_bytes'))} and the limit is"
            f" {size(number(ahead.details, 'limit_bytes'))}"
        )
        return (
            f"{ranks_at_once(scene)} ranks that import {what} at once will run out of memory:"
            f" {numbers}; {max(scene.group.world_size, scene.plan.nproc)} fit"
        )
    numbers = ""
    if limit is not None and need:
        numbers = f": they need {size(need)} and the limit is {size(limit[0])}"
    return (
        f"All {ranks_at_once(scene)} ranks import {what} at once and run out of memory{numbers};"
        " one alone succeeds"
    )


LOCK = """
Import one after the other
    import trainprobe; with trainprobe.import_lock(): import {names}
    {python} -m pip install --no-deps trainprobe   (standard library only; where the job's Python
        has it not)
"""
BUILD = """
Build beforehand, and with fewer compilers
    MAX_JOBS={jobs} {python} -c 'import {names}'   (once, before the ranks start; the build is then
        found in TORCH_EXTENSIONS_DIR)
    export MAX_JOBS={jobs}
"""
MEMORY = """
[admin] Give the job more memory, or start fewer ranks
    {more}
"""
LESS = """
Import less
    import what only rank 0 needs on rank 0; build extensions and caches beforehand
"""


def _fixes(scene: Scene) -> Fixes:
    limit, need = limit_of(scene), need_bytes(scene)
    more = "raise the job's memory request"
    if limit is not None and need:
        now = f"now {size(limit[0])}"
        more = f"ask for at least {size(need * 1.25)} for {ranks_at_once(scene)} ranks ({now})"
    names = ", ".join(modules(scene)) or "HEAVY_MODULE"
    python = scene.plan.interpreter_path or "python"
    lock, memory = fixes(LOCK, names=names, python=python), fixes(MEMORY, more=more)
    imports = tried(scene, "alone", "whole", "together")
    started = max((fact.compilers for fact in imports), default=0)
    if not started:
        return (*lock, *memory, *fixes(LESS))
    jobs = max(1, started // 2)
    return (*lock, *fixes(BUILD, jobs=jobs, names=names, python=python), *memory)


# Processes that got no memory while they imported, as logs tell of them: one may have grown,
# several at once are in each other's way.
MEMORY_WORDS = (
    "MemoryError",
    "bad_alloc",
    "allocate memory",
    "Out of memory",
    "out of memory",
    "Errno 12",
)
# CPython's import machinery: frozen, or as the file of older versions.
_MACHINERY = ("importlib._bootstrap", "importlib/_bootstrap")


def _starved(scene: Scene) -> tuple[FatalSignal | RankException, ...]:
    """Deaths and exceptions of the cell for want of memory, one per place in the logs."""
    died = [
        fact
        for fact in scene.of(FatalSignal)
        if not fact.echo and _of_memory(f"{fact.exception} {fact.message}")
    ]
    raised = [
        fact
        for fact in scene.of(RankException)
        if not (fact.echo or fact.handled) and _of_memory(f"{fact.type}: {fact.message}")
    ]
    return (*died, *raised)


def _of_memory(text: str) -> bool:
    return any(word in text for word in MEMORY_WORDS) and "CUDA" not in text and "HIP" not in text


def told_by_several(scene: Scene) -> Weighings:
    """At least two processes without memory, of which one stood in an import."""
    starved = _starved(scene)
    importing = [
        fact
        for fact in starved
        if any(part in frame.file for frame in fact.frames for part in _MACHINERY)
    ]
    if len({(fact.rank, fact.place) for fact in starved}) < 2 or not importing:
        return
    where = first_found(
        frame for frame in importing[0].frames if not any(part in frame.file for part in _MACHINERY)
    )
    says = (
        f"{len(starved)} processes got no memory, and at least {len(importing)} of them stood in an"
        " import"
    )
    says = f"{says}{f' at {short(where.where, 80)}' if where is not None else ''}"
    yield weighing(26, "suspects-stack", says, *starved[:8])


def one_by_one(scene: Scene) -> Weighings:
    """`LOCK:` lines show that the ranks imported one after the other."""
    released = scene.events("import-lock-released")
    ranks = {event.captured.get("by") or event.captured.get("pid", "") for event in released}
    if len(ranks) >= 2:
        says = f"{len(ranks)} ranks imported one after the other, under trainprobe's import lock"
        yield weighing(-13, "suspects-log", says, *released[:8])


# What the ranks of a host need when they import at the same moment, as the import probe measured
# it.
BAD = ("failed", "crashed", "oom_killed")


def tried(scene: Scene, *how: str) -> tuple[ImportTried, ...]:
    return tuple(fact for fact in scene.facts.of(ImportTried) if fact.how in how)


def starved(fact: ImportTried) -> bool:
    """Did it die for want of memory, itself or by the loss of a compiler that it had started?"""
    lost = fact.outcome in BAD and bool(fact.oom_rise)
    return (
        lost
        or fact.outcome == "oom_killed"
        or any(word in f"{fact.error_type} {fact.error}" for word in MEMORY_WORDS)
    )


def ranks_at_once(scene: Scene) -> int:
    """How many ranks import together: of the predicted run, else of the cell."""
    ahead = foreseen(scene)
    number = ahead.details.get("ranks") if ahead is not None else None
    return number if isinstance(number, int) else max(scene.group.world_size, scene.plan.nproc, 1)


def heaviest(scene: Scene) -> ImportTried | None:
    """All imports in one process, else the heaviest: imports share pages and do not add up."""
    passed = [fact for fact in tried(scene, "alone", "whole") if fact.outcome == "passed"]
    return max(passed, key=lambda fact: (fact.how == "whole", each_bytes(fact)), default=None)


def each_bytes(fact: ImportTried) -> int:
    """What each further rank needs: its peak without pages of files, and its compilers."""
    own = fact.private_bytes if fact.private_bytes is not None else fact.rss_bytes
    return (own or 0) + fact.build_bytes


def need_bytes(scene: Scene) -> int:
    one = heaviest(scene)
    return each_bytes(one) * ranks_at_once(scene) if one is not None else 0


def limit_of(scene: Scene) -> tuple[int, Fact] | None:
    """The lowest memory limit in bytes, by the import probe or the cgroup."""
    found: list[tuple[int, Fact]] = [
        (fact.limit_bytes, fact) for fact in scene.facts.of(MemoryLimit) if fact.limit_bytes
    ]
    found += [
        (int(fact.value), fact)
        for fact in scene.of(Measured)
        if fact.name == "limit.memory_bytes" and fact.value > 0
    ]
    return min(found, key=lambda one: one[0], default=None)


def foreseen(scene: Scene) -> ProbeFailure | None:
    """The probe's word that the planned ranks would need more than there is."""
    reported = [
        fact for fact in scene.of(ProbeFailure) if fact.details.get("name") == "import.foreseen"
    ]
    return reported[0] if reported else None


def number(details: Mapping[str, Any], name: str) -> int:
    value = details.get(name)
    return int(value) if isinstance(value, (int, float)) else 0


def modules(scene: Scene) -> tuple[str, ...]:
    """The heaviest modules first, without those that weigh a tenth of the storm or less."""
    alone = sorted(tried(scene, "alone"), key=each_bytes, reverse=True)
    kept = [
        fact.module
        for fact in alone
        if fact.module and 10 * each_bytes(fact) >= each_bytes(alone[0])
    ]
    return tuple(kept[:3])


def of_the_command(scene: Scene) -> Weighings:
    """The user's command lost a rank to memory before its first step, while all imported."""
    lost = scene.group.probe == "user_script" and (
        killed(scene) or statement(scene, REFUSED) is not None
    )
    if not lost or any(
        (one.optimizer_steps or one.batches or one.output_steps or 0) > 0
        for one in scene.progress(scene.world)
    ):
        return
    passed = [fact for fact in tried(scene, "alone") if fact.outcome == "passed"]
    short_of = [fact for fact in tried(scene, "together") if starved(fact)]
    if passed and short_of:
        says = (
            "No step was taken yet, and the same imports at once, without the script, lose"
            f" {len(short_of)} ranks for want of memory"
        )
        yield weighing(26, "probe-outcome", says, *short_of)
    inside = [thread for thread in scene.threads(scene.world) if thread.importing]
    if inside:
        who = sorted({thread.rank or 0 for thread in inside})
        says = f"{ranks_say(who)} {verb(who, 'stands', 'stand')} inside an import at that moment"
        yield weighing(13, "other-stacks", says, *inside)
        fewer = [
            rung
            for rung in scene.facts.of(Rung)
            if rung.probe == scene.group.probe and rung.nproc < scene.group.world_size
        ]
        if fewer and all(rung.outcome in ("passed", "not_measured") for rung in fewer):
            says = (
                f"On {fewer[0].nproc} {'rank' if fewer[0].nproc == 1 else 'ranks'} the same command"
                " came through"
            )
            yield weighing(6, "exit-status", says, *fewer)


CAUSE = Cause(
    id="import-storm",
    title="All ranks import at once and run out of memory",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="trainprobe diagnose --only import_memory with fewer ranks",
    refines="host-oom-killed",
)
