"""One plain process spreads over all GPUs by threads.

A script started without a launcher sees several GPUs, and the Trainer wraps the model into nn.DataParallel unasked: one process, a thread for each GPU, slow and full
of surprises (another batch size, gathers on GPU 0, dead locks between threads). transformers takes n_gpu from torch.cuda.device_count() where no launcher
set ranks (TrainingArguments._setup_devices) and wraps where it is above 1 (Trainer._wrap_model; both read in 5.23). Lightning 2 has no such strategy, and its
Fabric wraps only where it is told "dp". Without a GPU the wrapper keeps no device and passes everything on (torch 2.13, nn/parallel/data_parallel.py).

It is recognised by the wrapper that the witness saw made over several GPUs, or by its frames on the stacks of a single process that has no rank and holds
several GPUs. A launcher or a rank rules it out. In logs: an error in a replica, or torch's warning about gathered scalars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spreading import launched_plainly, made_at, written
from trainprobe.causes.told import last_words, told
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, Gpu, LogJob, Thread
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup
from trainprobe.waits.spread import spread

WORDING = (
    r"in replica \d{1,3} on device \d|Was asked to gather along dimension 0, but all input tensors were scalars"
    r"|must have its parameters and buffers on device cuda:\d{1,3} \(device_ids\[0\]\) but found one of them on device"
)
# What such a replica most often fails of for other reasons.
OTHER = r"out of memory|OutOfMemoryError|device-side assert|illegal memory access|CUBLAS_STATUS|CUDNN_STATUS|AcceleratorError"
PARALLEL = ("torch/nn/parallel/data_parallel.py", "torch/nn/parallel/parallel_apply.py")


def _threads(facts: Facts, group: SuspectGroup) -> tuple[Thread, ...]:
    return tuple(t for t in facts.of(Thread, cell=group.cell) if any(frame.file.endswith(PARALLEL) for frame in t.frames))


def _gpus(facts: Facts, group: SuspectGroup) -> tuple[Gpu, ...]:
    pids = {thread.pid for thread in _threads(facts, group)}
    return tuple(gpu for gpu in facts.of(Gpu, cell=group.cell) if pids & {process.pid for process in gpu.processes})


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    threads, job, made = _threads(facts, group), scene.live, spread(facts, group.cell)
    if made is not None:
        yield weighing(26, "process-state-and-locks", f"nn.DataParallel over {made.devices} GPUs was made{made_at(made)}", made)
        yield from launched_plainly(scene)
    yield from written(scene)
    if not threads:
        yield from _told(scene)
        return
    if len(scene.world) > 1:
        yield weighing(-26, "process-state-and-locks", f"The job has {len(scene.world)} ranks", *threads[:1])
        return
    yield weighing(13, "suspects-stack", f"Pid {threads[0].pid} is inside nn.DataParallel", *threads[:2])
    if len(_gpus(facts, group)) > 1:
        yield weighing(10, "gpu", f"It holds {len(_gpus(facts, group))} GPUs by itself", *_gpus(facts, group))
    if job is not None and job.launcher in ("single", "data-parallel", "bare") and not any("RANK" in values for values in job.environment.values()):
        yield weighing(6, "environment-and-limits", "It was started without a launcher: no RANK is set", job)


def _told(scene: Scene) -> Iterator[Weighing]:
    inside = [one for one in last_words(scene)[:1] if any(frame.file.replace("\\", "/").endswith(PARALLEL) for frame in one.frames)]
    heard = told(scene, WORDING, "data-parallel")
    ranks = {rank for job in scene.facts.of(LogJob, cell=scene.cell) for rank in job.ranks}
    if heard is None and not inside:
        return
    shown = heard.fact if heard is not None else inside[0]
    if len(ranks) > 1:
        yield weighing(-26, "process-state-and-locks", f"The job has {len(ranks)} ranks", shown)
        return
    other = any(re.search(OTHER, f"{one.type}: {one.message}") for one in last_words(scene)[:1])
    strong = bool(inside) or (heard is not None and heard.last_words)
    says = short(heard.text) if heard is not None else f"{inside[0].type} inside nn.DataParallel"
    yield weighing((6 if other else 26) if strong else 6, "suspects-log", f"One process runs on several GPUs by threads: {says}", shown)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    made = spread(facts, group.cell)
    if made is not None:
        return sentence(
            f"One process spreads over {made.devices} GPUs by the threads of nn.DataParallel, which was made{made_at(made)}, and no launcher started it"
        )
    if not _threads(facts, group):
        heard = told(Scene(facts, group), WORDING, "data-parallel")
        return sentence(f"One process spreads over all GPUs by nn.DataParallel, without a launcher{f': {short(heard.text, 140)}' if heard is not None else ''}")
    held = len(_gpus(facts, group))
    return sentence(f"Pid {_threads(facts, group)[0].pid} runs nn.DataParallel{f' over {held} GPUs' if held else ''} in one process, without a launcher")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    script = (scene.live.script if scene.live is not None else "") or scene.plan.script or "train.py"
    return (
        fix(scene, "Start one process for each GPU", f"torchrun --nproc-per-node gpu {script}   or   accelerate launch {script}"),
        fix(scene, "Or use one GPU on purpose", f"CUDA_VISIBLE_DEVICES=0 python {script}"),
    )


CAUSE = Cause(
    id="accidental-data-parallel",
    title="One plain process spreads over all GPUs by threads",
    means="One plain process sees several GPUs and the framework spreads over them by threads without being asked.",
    telling="One process holds all GPUs, no RANK is set, and frames of nn.DataParallel are on the stack.",
    modes=("hang", "slow", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="py-spy dump --pid <PID>: is data_parallel.py on the stack?",
    ranks=nobody,
    accounts_for=("rank-stuck", "thread-deadlock", "user-exception"),
    wording=WORDING,
)
