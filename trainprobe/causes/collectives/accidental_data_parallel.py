"""One plain process spreads over all GPUs by threads.

A script started without a launcher sees several GPUs, and the Trainer wraps the model into
nn.DataParallel unasked: one process, a thread for each GPU, slow and full of surprises (another
batch size, gathers on GPU 0, dead locks between threads). transformers takes n_gpu from
torch.cuda.device_count() where no launcher set ranks (TrainingArguments._setup_devices) and wraps
where it is above 1 (Trainer._wrap_model; both read in 5.23). Lightning 2 has no such strategy, and
its Fabric wraps only where it is told "dp". Without a GPU the wrapper keeps no device and passes
everything on (torch 2.13, nn/parallel/data_parallel.py).

It is recognised by the wrapper that the witness saw made over several GPUs, or by its frames on the
stacks of a single process that has no rank and holds several GPUs. A launcher or a rank rules it
out. In logs: an error in a replica, or torch's warning about gathered scalars.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import final_exceptions, startup_failure
from trainprobe.causes.statements import quote_after
from trainprobe.facts import DataParallelMade, Gpu, LogJob, Plan, SourceSite, Thread
from trainprobe.signatures.messages import message
from trainprobe.waits.data_parallel import spread

WORDING = message("accidental-data-parallel")
OTHER = message("accidental-data-parallel.other")
PARALLEL = ("torch/nn/parallel/data_parallel.py", "torch/nn/parallel/parallel_apply.py")


def _threads(scene: Scene) -> tuple[Thread, ...]:
    return tuple(
        t for t in scene.of(Thread) if any(frame.file.endswith(PARALLEL) for frame in t.frames)
    )


def _gpus(scene: Scene) -> tuple[Gpu, ...]:
    pids = {thread.pid for thread in _threads(scene)}
    return tuple(gpu for gpu in scene.of(Gpu) if pids & gpu.pids)


def _weigh(scene: Scene) -> Weighings:
    threads, job, made = _threads(scene), scene.live, spread(scene.facts, scene.cell)
    if made is not None:
        says = f"nn.DataParallel over {made.devices} GPUs was made{made_at(made)}"
        yield weighing(26, "process-state-and-locks", says, made)
        yield from launched_plainly(scene)
    yield from written(scene)
    if not threads:
        yield from _from_log(scene)
        return
    if len(scene.world) > 1:
        yield weighing(
            -26, "process-state-and-locks", f"The job has {len(scene.world)} ranks", *threads[:1]
        )
        return
    yield weighing(
        13, "suspects-stack", f"Pid {threads[0].pid} is inside nn.DataParallel", *threads[:2]
    )
    if len(_gpus(scene)) > 1:
        yield weighing(10, "gpu", f"It holds {len(_gpus(scene))} GPUs by itself", *_gpus(scene))
    if (
        job is not None
        and job.launcher in ("single", "data-parallel", "bare")
        and not any("RANK" in values for values in job.environment.values())
    ):
        yield weighing(
            6, "environment-and-limits", "It was started without a launcher: no RANK is set", job
        )


def _from_log(scene: Scene) -> Weighings:
    inside = [
        exception
        for exception in final_exceptions(scene)[:1]
        if any(frame.file.replace("\\", "/").endswith(PARALLEL) for frame in exception.frames)
    ]
    found = startup_failure(scene, WORDING, "data-parallel")
    ranks = {rank for job in scene.of(LogJob) for rank in job.ranks}
    if found is None and not inside:
        return
    shown = found.fact if found is not None else inside[0]
    if len(ranks) > 1:
        yield weighing(-26, "process-state-and-locks", f"The job has {len(ranks)} ranks", shown)
        return
    other = any(
        re.search(OTHER, f"{exception.type}: {exception.message}")
        for exception in final_exceptions(scene)[:1]
    )
    strong = bool(inside) or (found is not None and found.last_words)
    says = short(found.text) if found is not None else f"{inside[0].type} inside nn.DataParallel"
    says = f"One process runs on several GPUs by threads: {says}"
    yield weighing((6 if other else 26) if strong else 6, "suspects-log", says, shown)


def _summary(scene: Scene) -> str:
    made = spread(scene.facts, scene.cell)
    if made is not None:
        return (
            f"One process spreads over {made.devices} GPUs by the threads of nn.DataParallel, which"
            f" was made{made_at(made)}, and no launcher started it"
        )
    if not _threads(scene):
        found = startup_failure(scene, WORDING, "data-parallel")
        return (
            "One process spreads over all GPUs by nn.DataParallel, without a"
            f" launcher{quote_after(found)}"
        )
    held = len(_gpus(scene))
    return (
        f"Pid {_threads(scene)[0].pid} runs"
        f" nn.DataParallel{f' over {held} GPUs' if held else ''} in one process, without a launcher"
    )


def _fixes(scene: Scene) -> Fixes:
    script = (
        (scene.live.script if scene.live is not None else "") or scene.plan.script or "train.py"
    )
    return (
        fix(
            "Start one process for each GPU",
            f"torchrun --nproc-per-node gpu {script}   or   accelerate launch {script}",
        ),
        fix("Or use one GPU on purpose", f"CUDA_VISIBLE_DEVICES=0 python {script}"),
    )


# One process that spreads over several GPUs by threads: who made the wrapper, how the program was
# started, and what its source says.
LAUNCHER = re.compile(
    r"(?:^|/)(?:torchrun|accelerate|deepspeed|mpirun|srun)$|torch\.distributed\.(?:run|launch)$"
)
WRITTEN = re.compile(r"(?<!Distributed)\bDataParallel\(")


def made_at(made: DataParallelMade) -> str:
    """` at trainer.py:2672 in _wrap_model, for train.py:40 in <module>`; empty if unknown."""
    by, user = made.by, made.user
    return (
        f" at {by.where}" + (f", for {user.where}" if made.unasked and user is not None else "")
        if by is not None
        else ""
    )


def launched_plainly(scene: Scene) -> Weighings:
    """Weigh that the user's command names no launcher."""
    plan = scene.facts.one(Plan)
    if (
        plan is not None
        and plan.form == "command"
        and plan.argv
        and not any(LAUNCHER.search(word) for word in plan.argv)
    ):
        says = f"It is started as `{short(' '.join(plan.argv), 60)}`, without a launcher"
        yield weighing(6, "environment-and-limits", says, plan)


def written(scene: Scene) -> Weighings:
    """The wrapper in the source around the suspects' frames, where one process is all there is."""
    if len(scene.world) > 1:
        return
    sites = [
        site
        for site in scene.of(SourceSite)
        if any(WRITTEN.search(text) for text in (site.text, *(b.text for b in site.blocks)))
    ]
    if sites:
        says = (
            f"The source wraps the model at {sites[0].file.rsplit('/', 1)[-1]}:{sites[0].line}:"
            f" {short(sites[0].text, 80)}"
        )
        yield weighing(6, "source", says, *sites[:1])


CAUSE = Cause(
    id="accidental-data-parallel",
    title="One plain process spreads over all GPUs by threads",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="py-spy dump --pid <PID>: is data_parallel.py on the stack?",
    ranks=nobody,
    accounts_for=("rank-stuck", "thread-deadlock", "user-exception"),
    wording=WORDING,
)
