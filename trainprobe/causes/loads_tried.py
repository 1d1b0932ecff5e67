"""What the probe that loads the model found: alone, by all ranks at once, by cheaper ways, and what the planned ranks would need."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.forked_tries import value_of
from trainprobe.causes.host_memory import REFUSED
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import size
from trainprobe.facts import HostCheck, Measured, ProbeFailure
from trainprobe.model.diagnosis import Weighing

PROBE = "model_load"
WORDS = {
    "mmap": "torch.load(path, map_location='cpu', mmap=True)",
    "assign": "with torch.device('meta'): model = build(); model.load_state_dict(weights, assign=True)",
    "low_cpu_mem_usage": "from_pretrained(..., low_cpu_mem_usage=True)",
    "dtype": "from_pretrained(..., torch_dtype='auto', low_cpu_mem_usage=True)",
    "given-in-turn": "for turn in range(local_world_size): load if turn == local_rank; dist.barrier()",
}


def failures(scene: Scene, *, together: bool) -> tuple[ProbeFailure, ...]:
    """Loads that failed in this cell, of one process alone or of several at once."""
    found = [fact for fact in scene.facts.of(ProbeFailure, cell=scene.cell) if fact.details.get("name") == "load"]
    return tuple(fact for fact in found if (fact.details.get("ranks") != 1) is together)


def starved(failure: ProbeFailure) -> bool:
    words = f"{failure.details.get('type', '')}: {failure.details.get('message', '')}"
    return failure.details.get("outcome") == "oom_killed" or re.search(REFUSED, words) is not None


def alone(scene: Scene) -> Measured | None:
    """The highest mark of one process that loads the model as it was given."""
    found = scene.facts.of(Measured)
    return next((fact for fact in found if fact.name == "load.host_peak" and fact.labels.get("how") == "given" and fact.labels.get("ranks") == 1), None)


def foreseen(scene: Scene) -> HostCheck | None:
    """The check that the planned ranks fit in the memory, where they do not."""
    return next((check for check in scene.checks("model.memory") if check.status == "fail" and check.cell == scene.cell), None)


def weigh_loads(scene: Scene) -> Iterator[Weighing]:
    """Alone it goes well, together it does not: by what was seen, or by what one takes times the ranks that are planned."""
    if scene.group.probe != PROBE:
        return
    one, ahead = alone(scene), foreseen(scene)
    bad = [fact for fact in failures(scene, together=True) if starved(fact)]
    for fact in failures(scene, together=False):
        yield weighing(-26, "probe-outcome", "One process alone does not load the model either", fact)
    if bad and one is not None:
        yield weighing(26, "probe-outcome", f"One process loads the model with {size(one.value)}; {_many(bad)}", one, *bad)
    if ahead is not None:
        yield weighing(26, "environment-and-limits", ahead.says.rstrip("."), ahead)


def loads_say(scene: Scene) -> str:
    """The sentence for the reader; empty where the probe did not find the fault."""
    one, ahead = alone(scene), foreseen(scene)
    bad = [fact for fact in failures(scene, together=True) if starved(fact)]
    if bad and one is not None:
        return f"{_many(bad)}, where one alone does so with {size(one.value)}"
    return ahead.says if ahead is not None else ""


def cheaper(scene: Scene) -> tuple[str, tuple[str, ...]]:
    """(title, steps) of the way of loading that was measured to take the least; ("", ()) where none was cheaper."""
    for check in scene.checks("model.cheaper", bad_only=False):
        value = value_of(check)
        how, need, given = str(value.get("how")), value.get("need"), value.get("given")
        if how in WORDS and isinstance(need, (int, float)) and isinstance(given, (int, float)):
            title = "Let the ranks load one after the other" if how == "given-in-turn" else "Load it the cheaper way that was measured"
            return title, (WORDS[how], f"{size(need)} for {value.get('ranks')} ranks instead of {size(given)}")
    return "", ()


def _many(bad: list[ProbeFailure]) -> str:
    ranks = bad[0].details.get("ranks")
    return f"{len(bad)} of {ranks} processes that load the model at once got no more memory"
