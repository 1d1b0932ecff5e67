"""All ranks of a node load the model at once, and together need more memory than there is.

Each rank reads the whole checkpoint into the memory of the host before it keeps its part, or
unpickles it onto the GPU that it was saved from, which is GPU 0 for all of them. One process alone
goes well; eight do not. The probe that loads the model sees it beforehand: alone, by all ranks at
once, and by what one takes times the ranks that are planned.

It is recognised by a kill, or a refusal of memory, while weights are being loaded by several ranks:
below `from_pretrained`, `load_state_dict` or `torch.load`, or with the bar of the checkpoint's
shards not at its end. With one rank alone it is the host's memory itself (`host-oom-killed`).
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.fork_probe import value_of
from trainprobe.causes.gpu_memory import LOADING, shortage
from trainprobe.causes.host_memory import REFUSED, WORDING, kill_report, killed, loading_bar, proof
from trainprobe.causes.phrases import Fixes, admin_fix, fix, short, size, subject
from trainprobe.causes.scene import Scene, Weighings, first_found, user_frame, weighing
from trainprobe.causes.statements import quote, statement
from trainprobe.facts import HostCheck, Measured, ProbeFailure


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_loads(scene)
    several = (
        len(scene.world) > 1
        or len({event.rank for event in scene.events("loading-weights") if event.rank is not None})
        > 1
    )
    on_gpu = shortage(scene)
    if on_gpu is not None:
        if on_gpu.kind == "loading" and on_gpu.numbers.held_by_others:
            says = f"Several ranks fill one GPU while they load, below {on_gpu.why}"
            yield weighing(13, "suspects-stack", says, on_gpu.heard.fact)
            says = f"The allocator says: {short(on_gpu.heard.text, 120)}"
            yield weighing(
                26 if on_gpu.heard.origin else 13, "suspects-log", says, on_gpu.heard.fact
            )
        return
    refused = statement(scene, WORDING)
    frames = scene.origin.frames if scene.origin is not None and refused is not None else ()
    below = next((frame for frame in frames if LOADING.search(f"{frame.name} {frame.text}")), None)
    bar = loading_bar(scene)
    line, found = proof(scene), kill_report(scene)
    gone = [*killed(scene), *(fact for fact in (line, found) if fact is not None), *scene.oom_kills]
    points = 13 if several else 3
    if refused is not None and below is not None:
        yield weighing(
            points, "suspects-stack", f"Memory could not be had below {below.where}", refused.fact
        )
        yield quote(points, "It says", refused)
    elif gone and bar is not None:
        says = f"The weights were being loaded, {bar[0]} % of them, when a process was killed"
        yield weighing(points, "suspects-log", says, bar[1], gone[0])
        if several:
            yield weighing(
                6, "exit-status", "It got SIGKILL, and several ranks were loading", gone[0]
            )


def _summary(scene: Scene) -> str:
    if reported := loads_say(scene):
        return reported
    on_gpu, bar = shortage(scene), loading_bar(scene)
    if on_gpu is not None:
        where = f" at {frame.where}" if (frame := user_frame(on_gpu.frames)) else ""
        return (
            f"{subject(scene)} ran out of GPU memory{where}: all ranks load the weights onto"
            " one GPU"
        )
    far = f" at {bar[0]} % of the weights" if bar is not None else ""
    ranks = f"all {len(scene.world)} ranks load" if len(scene.world) > 1 else "the ranks load"
    return (
        f"{subject(scene)} was stopped{far} for lack of memory while {ranks} the model at the same"
        " moment"
    )


def _fixes(scene: Scene) -> Fixes:
    title, steps = cheaper(scene)
    return (
        *((fix(title, *steps),) if title else ()),
        fix(
            "Load without a copy per rank",
            "from_pretrained(…, low_cpu_mem_usage=True) with safetensors, which are memory-mapped",
            "torch.load(path, map_location='cpu', mmap=True); with torch.device('meta'): build,"
            " then load the shard of each rank",
        ),
        fix(
            "Rank by rank",
            "for turn in range(local_world_size): load if turn == local_rank; dist.barrier()",
        ),
        fix("Onto the rank's own GPU", "torch.load(path, map_location=f'cuda:{local_rank}')"),
        admin_fix("Give the node's job more memory", "sbatch --mem=0, or fewer ranks per node"),
    )


# What the probe that loads the model found: alone, by all ranks at once, by cheaper ways, and
# what the planned ranks would need.
PROBE = "model_load"
WORDS = {
    "mmap": "torch.load(path, map_location='cpu', mmap=True)",
    "assign": (
        "with torch.device('meta'): model = build(); model.load_state_dict(weights, assign=True)"
    ),
    "low_cpu_mem_usage": "from_pretrained(..., low_cpu_mem_usage=True)",
    "dtype": "from_pretrained(..., torch_dtype='auto', low_cpu_mem_usage=True)",
    "given-in-turn": (
        "for turn in range(local_world_size): load if turn == local_rank; dist.barrier()"
    ),
}


def failures(scene: Scene, *, together: bool) -> tuple[ProbeFailure, ...]:
    """Loads that failed in this cell, of one process alone or of several at once."""
    found = [fact for fact in scene.of(ProbeFailure) if fact.details.get("name") == "load"]
    return tuple(fact for fact in found if (fact.details.get("ranks") != 1) is together)


def starved(failure: ProbeFailure) -> bool:
    words = f"{failure.details.get('type', '')}: {failure.details.get('message', '')}"
    return failure.details.get("outcome") == "oom_killed" or re.search(REFUSED, words) is not None


def alone(scene: Scene) -> Measured | None:
    """The highest mark of one process that loads the model as it was given."""
    found = scene.facts.of(Measured)
    return first_found(
        fact
        for fact in found
        if fact.name == "load.host_peak"
        and fact.labels.get("how") == "given"
        and fact.labels.get("ranks") == 1
    )


def foreseen(scene: Scene) -> HostCheck | None:
    """The check that the planned ranks fit in the memory, where they do not."""
    return first_found(
        check
        for check in scene.checks("model.memory")
        if check.status == "fail" and check.cell == scene.cell
    )


def weigh_loads(scene: Scene) -> Weighings:
    """One process loads the model and several cannot, as seen or by calculation."""
    if scene.group.probe != PROBE:
        return
    one, ahead = alone(scene), foreseen(scene)
    bad = [fact for fact in failures(scene, together=True) if starved(fact)]
    for fact in failures(scene, together=False):
        yield weighing(
            -26, "probe-outcome", "One process alone does not load the model either", fact
        )
    if bad and one is not None:
        says = f"One process loads the model with {size(one.value)}; {_many(bad)}"
        yield weighing(26, "probe-outcome", says, one, *bad)
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
    """(title, steps) of the cheapest way of loading that was measured; ("", ()) if none."""
    for check in scene.checks("model.cheaper", bad_only=False):
        value = value_of(check)
        how, need, given = str(value.get("how")), value.get("need"), value.get("given")
        if how in WORDS and isinstance(need, (int, float)) and isinstance(given, (int, float)):
            title = "Load it the cheaper way that was measured"
            if how == "given-in-turn":
                title = "Let the ranks load one after the other"
            return title, (
                WORDS[how],
                f"{size(need)} for {value.get('ranks')} ranks instead of {size(given)}",
            )
    return "", ()


def _many(bad: list[ProbeFailure]) -> str:
    ranks = bad[0].details.get("ranks")
    return f"{len(bad)} of {ranks} processes that load the model at once got no more memory"


CAUSE = Cause(
    id="model-load-memory",
    title="The ranks of a node load the model at once and run out of memory",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=(
        "the peak memory of one process that loads the model, times the ranks of a node, against"
        " free -g"
    ),
    refines="host-oom-killed",
    accounts_for=("cuda-oom", "gpu-memory-held-by-other", "rank-killed", "user-exception"),
)
