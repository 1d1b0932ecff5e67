"""All ranks of a node load the model at once, and together need more memory than there is.

Each rank reads the whole checkpoint into the memory of the host before it keeps its part, or unpickles it onto the GPU that it was saved from,
which is GPU 0 for all of them. One process alone goes well; eight do not.
The probe that loads the model sees it beforehand: alone, by all ranks at once, and by what one takes times the ranks that are planned.

It is recognised by a kill, or a refusal of memory, while weights are being loaded by several ranks: below `from_pretrained`, `load_state_dict` or
`torch.load`, or with the bar of the checkpoint's shards not at its end. With one rank alone it is the host's memory itself (`host-oom-killed`).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.gpu_memory import LOADING, shortage
from trainprobe.causes.host_memory import WORDING, heard_kill, killed, loading_bar, proof
from trainprobe.causes.loads_tried import cheaper, loads_say, weigh_loads
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_loads(scene)
    several = len(scene.world) > 1 or len({event.rank for event in scene.events("loading-weights") if event.rank is not None}) > 1
    on_gpu = shortage(scene)
    if on_gpu is not None:
        if on_gpu.kind == "loading" and on_gpu.numbers.held_by_others:
            yield weighing(13, "suspects-stack", f"Several ranks fill one GPU while they load, below {on_gpu.why}", on_gpu.heard.fact)
            yield weighing(26 if on_gpu.heard.origin else 13, "suspects-log", f"The allocator says: {short(on_gpu.heard.text, 120)}", on_gpu.heard.fact)
        return
    refused = said(scene, WORDING)
    frames = scene.origin.frames if scene.origin is not None and refused is not None else ()
    below = next((frame for frame in frames if LOADING.search(f"{frame.name} {frame.text}")), None)
    bar = loading_bar(scene)
    line, heard = proof(scene), heard_kill(scene)
    gone = [*killed(scene), *(fact for fact in (line, heard) if fact is not None), *scene.oom_kills]
    points = 13 if several else 3
    if refused is not None and below is not None:
        yield weighing(points, "suspects-stack", f"Memory could not be had below {below.where}", refused.fact)
        yield weighing(points, "suspects-log", f"It says: {short(refused.text, 120)}", refused.fact)
    elif gone and bar is not None:
        yield weighing(points, "suspects-log", f"The weights were being loaded, {bar[0]} % of them, when a process was killed", bar[1], gone[0])
        if several:
            yield weighing(6, "exit-status", "It got SIGKILL, and several ranks were loading", gone[0])


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    if told := loads_say(scene):
        return sentence(told)
    on_gpu, bar = shortage(scene), loading_bar(scene)
    if on_gpu is not None:
        where = f" at {frame.where}" if (frame := user_frame(on_gpu.frames)) else ""
        return sentence(f"{subject(scene)} ran out of GPU memory{where}: all ranks load the weights onto one GPU")
    far = f" at {bar[0]} % of the weights" if bar is not None else ""
    ranks = f"all {len(scene.world)} ranks load" if len(scene.world) > 1 else "the ranks load"
    return sentence(f"{subject(scene)} was stopped{far} for lack of memory while {ranks} the model at the same moment")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    title, steps = cheaper(scene)
    return (
        *((fix(scene, title, *steps),) if title else ()),
        fix(
            scene,
            "Load without a copy per rank",
            "from_pretrained(…, low_cpu_mem_usage=True) with safetensors, which are memory-mapped",
            "torch.load(path, map_location='cpu', mmap=True); with torch.device('meta'): build, then load the shard of each rank",
        ),
        fix(scene, "Rank by rank", "for turn in range(local_world_size): load if turn == local_rank; dist.barrier()"),
        fix(scene, "Onto the rank's own GPU", "torch.load(path, map_location=f'cuda:{local_rank}')"),
        fix(scene, "Give the node's job more memory", "sbatch --mem=0, or fewer ranks per node", who="admin", risk="needs-admin"),
    )


CAUSE = Cause(
    id="model-load-memory",
    title="The ranks of a node load the model at once and run out of memory",
    means="All ranks of a node load the model at once and together need more memory than there is.",
    telling="A kill or a refusal of memory while several ranks load weights; one rank alone fits.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="the peak memory of one process that loads the model, times the ranks of a node, against free -g",
    refines="host-oom-killed",
    accounts_for=("cuda-oom", "gpu-memory-held-by-other", "rank-killed", "user-exception"),
)
