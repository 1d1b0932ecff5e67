"""What the ranks of a host need when they import at the same moment, as the import probe measured it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainprobe.causes.host_memory import REFUSED, killed
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.starved_imports import MEMORY_WORDS
from trainprobe.causes.words import ranks_say, verb
from trainprobe.facts import ImportTried, Measured, MemoryLimit, ProbeFailure, Rung
from trainprobe.model.diagnosis import Weighing
from trainprobe.model.facts import Fact

BAD = ("failed", "crashed", "oom_killed")


def tried(scene: Scene, *how: str) -> tuple[ImportTried, ...]:
    return tuple(fact for fact in scene.facts.of(ImportTried) if fact.how in how)


def starved(fact: ImportTried) -> bool:
    """Did it die for want of memory, itself or by the loss of a compiler that it had started?"""
    lost = fact.outcome in BAD and bool(fact.oom_rise)
    return lost or fact.outcome == "oom_killed" or any(word in f"{fact.error_type} {fact.error}" for word in MEMORY_WORDS)


def ranks_at_once(scene: Scene) -> int:
    """How many ranks import together: those of the real run where the probe foresaw for it, else those of the cell."""
    ahead = foreseen(scene)
    number = ahead.details.get("ranks") if ahead is not None else None
    return number if isinstance(number, int) else max(scene.group.world_size, scene.plan.nproc, 1)


def heaviest(scene: Scene) -> ImportTried | None:
    """Everything in one process, or else the heaviest import: imports share pages, so the heaviest counts, not the sum."""
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
    """The least limit of memory in bytes, by the probe that imports or by the look at the cgroup."""
    found: list[tuple[int, Fact]] = [(fact.limit_bytes, fact) for fact in scene.facts.of(MemoryLimit) if fact.limit_bytes]
    found += [(int(fact.value), fact) for fact in scene.facts.of(Measured, cell=scene.cell) if fact.name == "limit.memory_bytes" and fact.value > 0]
    return min(found, key=lambda one: one[0], default=None)


def foreseen(scene: Scene) -> ProbeFailure | None:
    """The probe's word that the planned ranks would need more than there is."""
    told = [fact for fact in scene.facts.of(ProbeFailure, cell=scene.cell) if fact.details.get("name") == "import.foreseen"]
    return told[0] if told else None


def number(details: Mapping[str, Any], name: str) -> int:
    value = details.get(name)
    return int(value) if isinstance(value, (int, float)) else 0


def modules(scene: Scene) -> tuple[str, ...]:
    """The modules that make the storm, the heaviest first, those left out that weigh a tenth of it or less."""
    alone = sorted(tried(scene, "alone"), key=each_bytes, reverse=True)
    kept = [fact.module for fact in alone if fact.module and 10 * each_bytes(fact) >= each_bytes(alone[0])]
    return tuple(kept[:3])


def of_the_command(scene: Scene) -> Iterator[Weighing]:
    """The user's own command lost a rank for want of memory before its first step, and imports at once are known or seen to do that."""
    lost = scene.group.probe == "user_script" and (killed(scene) or said(scene, REFUSED) is not None)
    if not lost or any((one.optimizer_steps or one.batches or one.output_steps or 0) > 0 for one in scene.progress(scene.world)):
        return
    passed = [fact for fact in tried(scene, "alone") if fact.outcome == "passed"]
    short_of = [fact for fact in tried(scene, "together") if starved(fact)]
    if passed and short_of:
        says = f"No step was taken yet, and the same imports at once, without the script, lose {len(short_of)} ranks for want of memory"
        yield weighing(26, "probe-outcome", says, *short_of)
    inside = [thread for thread in scene.threads(scene.world) if thread.importing]
    if inside:
        who = sorted({thread.rank or 0 for thread in inside})
        yield weighing(13, "other-stacks", f"{ranks_say(who)} {verb(who, 'stands', 'stand')} inside an import at that moment", *inside)
        fewer = [rung for rung in scene.facts.of(Rung) if rung.probe == scene.group.probe and rung.nproc < scene.group.world_size]
        if fewer and all(rung.outcome in ("passed", "not_measured") for rung in fewer):
            yield weighing(6, "exit-status", f"On {fewer[0].nproc} {'rank' if fewer[0].nproc == 1 else 'ranks'} the same command came through", *fewer)
