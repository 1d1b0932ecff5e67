"""What the ranks of a host need when they import at the same moment, as the import probe measured it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.causes.scene import Scene
from trainprobe.causes.starved_imports import MEMORY_WORDS
from trainprobe.facts import ImportTried, Measured, MemoryLimit, ProbeFailure
from trainprobe.model.facts import Fact

BAD = ("failed", "crashed", "oom_killed")


def tried(scene: Scene, *how: str) -> tuple[ImportTried, ...]:
    return tuple(fact for fact in scene.facts.of(ImportTried) if fact.how in how)


def starved(fact: ImportTried) -> bool:
    """Did it die for want of memory?"""
    return fact.outcome == "oom_killed" or any(word in f"{fact.error_type} {fact.error}" for word in MEMORY_WORDS)


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
