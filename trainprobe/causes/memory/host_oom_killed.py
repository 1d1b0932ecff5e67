"""The kernel, or the cgroup's limit, kills a process for lack of memory.

A rank that keeps every output, a model loaded once per rank, an optimizer offloaded to the CPU,
loader workers that each hold the data: the memory of the host or of the container runs out and the
kernel ends a process with SIGKILL. There is no traceback. When another rank is killed than the one
that grew, memory is still the cause.

It is recognised by SIGKILL that nobody sent together with a rise of the cgroup's count of
out-of-memory kills, by the line of the kernel, of Slurm, Kubernetes or Ray that says so, and by
refusals that Python or torch report. A count that was looked at and did not rise rules it out,
unless Python itself reported a lack of memory. Where memory at the planned size will be above the
limit, the kill is foretold. In logs, SIGKILL without a word is far more often memory than a person:
likely, and not proven.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.collective_timeouts import Timeouts
from trainprobe.causes.host_memory import (
    CANCELLED,
    GONE,
    REFUSED,
    WORDING,
    after_imports,
    kill_report,
    killed,
    limit_of,
    loading_bar,
    of_the_kernel,
    pressure,
    proof,
    strength,
)
from trainprobe.causes.phrases import (
    Fixes,
    admin_fix,
    fix,
    fixes,
    rank_or_process,
    short,
    size,
    subject,
)
from trainprobe.causes.predicted import COPIED, fewer_workers, foreseen, needed, weigh_foreseen
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import Statement, first_to_fail, quote, statement
from trainprobe.causes.user_objects import broken, weigh_broken
from trainprobe.model.predictions import Prediction

MORE = "sbatch --mem=…, docker run --memory=…, or resources.limits.memory in Kubernetes"


def _weigh(scene: Scene) -> Weighings:
    prediction = foreseen(scene.group, "pss")
    # copies of the data, or growth faster than it, are the nearer reason
    if prediction is not None:
        yield from weigh_foreseen(
            prediction, 13 if prediction.steep or (prediction.copies or 0.0) >= COPIED else 26
        )
        return
    refused = statement(scene, REFUSED)
    yield from of_the_kernel(scene)
    yield from weigh_broken(broken(scene, "oom_killed"), 26)
    if not (killed(scene) or refused or proof(scene) or kill_report(scene)):
        return
    yield from _kills(scene)
    yield from _from_log(scene, refused)
    yield from (*pressure(scene, refused), *after_imports(scene), *first_to_fail(scene, 3))


def _kills(scene: Scene) -> Weighings:
    cancelled, ends = bool(scene.events(*CANCELLED)), killed(scene)
    for end in ends:
        who = rank_or_process(end.rank)
        kill = next((fact for fact in scene.oom_kills if fact.pid and fact.pid == end.pid), None)
        if kill is not None:
            says = (
                f"The kernel log says that pid {kill.pid} was killed for lack of memory, with"
                f" {size(kill.rss_bytes)}"
            )
            yield weighing(26, "kernel-log", says, kill)
        if end.how == "oom_killed" or (end.oom_rise or 0) > 0:
            says = (
                f"{who} got SIGKILL, and the count of out-of-memory kills rose by"
                f" {end.oom_rise or 1}"
            )
            yield weighing(26, "exit-status", says, end)
        elif end.place is not None and not cancelled:
            # in logs nobody else's kill leaves so little behind
            says = f"{who} got SIGKILL, and nothing in the logs says who sent it"
            yield weighing(13, "exit-status", says, end)
        else:
            says = f"{who} got SIGKILL, and nobody of the job sent it"
            yield weighing(3 if cancelled else 6, "exit-status", says, end)
    found = kill_report(scene)
    # a watchdog that gives up a collective ends its process
    ended = found is not None and found.event in GONE and bool(Timeouts(scene).calls)
    if found is not None and not ends and not ended:
        gone = "is gone without a word" if found.event in GONE else "got SIGKILL"
        says = f"A process {gone}: {short(found.line, 100)}"
        yield weighing(3 if cancelled else 13, "exit-status", says, found)


def _from_log(scene: Scene, refused: Statement | None) -> Weighings:
    line, ends = proof(scene), killed(scene)
    if line is not None:
        # Another failure of the same ranks, no matter of memory, leaves it open whose process was
        # killed.
        first = scene.origin is not None and refused is None and not ends
        says = f"A process of the job was killed for lack of memory: {short(line.line, 120)}"
        yield weighing(6 if first else 26, "scheduler", says, line)
    if refused is not None:
        yield quote(strength(refused), "Memory could not be had", refused)
    if not (ends or line is not None or kill_report(scene) is not None):
        return
    offload, bar = scene.events("cpu-offload"), loading_bar(scene)
    if offload:
        says = f"State is offloaded to the CPU: {short(offload[0].line, 80)}"
        yield weighing(6, "environment-and-limits", says, offload[0])
    if bar is not None:
        says = f"Weights were being read into memory, {bar[0]} % of them"
        yield weighing(6, "environment-and-limits", says, bar[1])


# Slurm tells the kills that the step's cgroup has counted, whoever's limit was reached.
_OF_A_STEP = re.compile(r"oom[_-]kill event|cgroup out-of-memory handler")


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, "pss")) is not None:
        return f"The kernel will kill a process for lack of memory: {prediction.says}"
    end, line, found = next(iter(killed(scene)), None), proof(scene), kill_report(scene)
    pid = f" (pid {end.pid})" if end is not None and end.pid else ""
    limit = f", whose limit is {size(limit_of(scene))}" if limit_of(scene) else ""
    place = "of its cgroup" if limit else "of the host"
    if line is not None and not limit and _OF_A_STEP.search(line.line):
        place = "of its job step, or of the host,"
    proven = (
        line is not None
        or any(fact.how == "oom_killed" or fact.oom_rise for fact in killed(scene))
        or bool(scene.oom_kills)
    )
    if (end is not None and (proven or end.place is None)) or (
        end is None and (line is not None or scene.oom_kills)
    ):
        words = (
            f" was killed by the kernel because the memory {place}{limit}{',' if limit else ''}"
            " ran out"
        )
    elif end is not None or found is not None:
        ended = "got SIGKILL"
        if end is None and found is not None and found.event in GONE:
            ended = "was gone"
        words = (
            f" {ended} without a word, most likely because the memory"
            f" {place}{limit}{',' if limit else ''} ran out; no line proves it"
        )
    else:
        words = f" could get no more of the memory {place}{limit}"
    return f"{subject(scene)}{pid}{words}"


FIXES = """
See what grows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, 'MiB') once per step on each
        rank
    look for lists that keep tensors or outputs of every step; append loss.item(), not loss
Hold less
    fewer loader workers, memory-mapped data, no CPU offload, weights loaded once per node
[admin] Give the job more memory{now}
    {more}
"""


def _fixes(scene: Scene) -> Fixes:
    if (prediction := foreseen(scene.group, "pss")) is not None:
        return _fixes_foreseen(scene, prediction)
    now = f" (now {size(limit_of(scene))})" if limit_of(scene) else ""
    return fixes(FIXES, now=now, more=MORE)


def _fixes_foreseen(scene: Scene, prediction: Prediction) -> Fixes:
    now = f" (now {size(prediction.limit)})" if prediction.limit else ""
    return (
        *fewer_workers(scene, prediction),
        fix(
            "Hold less of the data in each process",
            "memory-mapped data (Arrow, np.load(..., mmap_mode='r')), or a shard for each rank",
        ),
        admin_fix(f"Give the job at least {size(needed(prediction))}{now}", MORE),
    )


CAUSE = Cause(
    id="host-oom-killed",
    title="The kernel killed a process for lack of memory",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle=(
        "dmesg | grep -i 'killed process', sacct -j JOB --format=State,MaxRSS,ReqMem, and"
        " memory.events of the job's cgroup"
    ),
    refines="user-exception",
    accounts_for=("data-worker-crash",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has too little memory left for the job", "have too little memory left for the job"),
        checks=("mem.available", "lim.cgmem", "host.oomkill"),
        values=("memory.limit_bytes",),
    ),
)
