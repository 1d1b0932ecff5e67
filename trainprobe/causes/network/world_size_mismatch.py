"""The job expects more or fewer processes than were started.

`WORLD_SIZE=4` beside `--nproc-per-node 3`, nodes that were given other counts, a world size written
into the script: those that were started wait for ranks that nobody starts.

In logs it is told by a barrier at which another number came than the world size, and by checks of
NCCL, Megatron, DeepSpeed, Lightning and MPI.

It is recognised by ranks at the rendezvous whose world size is not the number that the launcher
starts, or that do not agree on it. Where the numbers fit and ranks are missing all the same,
`rendezvous-incomplete` says it better.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.network.rendezvous_incomplete import absent, at_the_store
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, verb
from trainprobe.causes.rendezvous_failures import WORLD, weigh_world, world_summary
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Job, JobRank
from trainprobe.model.ranks import and_list

_NPROC = re.compile(
    r"--nproc[-_]per[-_]node[= ](\d{1,5})|--num[-_]processes[="
    r" ](\d{1,6})|\b(?:mpirun|mpiexec|srun)\b.*? -(?:np?|-ntasks)[= ]?(\d{1,6})"
)
_NNODES = re.compile(r"--nnodes[= ](\d{1,5})(?:\s|$)")

UNPLACED = "workers-unplaced"
# How many tasks a scheduler or MPI has started, which a script may not ask.
_TASKS = (
    "SLURM_STEP_NUM_TASKS",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
)


def _stated(job: Job) -> dict[str, list[str]]:
    """Each WORLD_SIZE of the environment, with whose it is."""
    found: dict[str, list[str]] = {}
    for who, values in sorted(job.environment.items()):
        if values.get("WORLD_SIZE"):
            found.setdefault(values["WORLD_SIZE"], []).append(who)
    return found


def _started(job: Job) -> int | None:
    """How many processes the launcher starts by its own arguments; None where they do not say."""
    match = _NPROC.search(job.launcher_cmdline)
    if match is None:
        return None
    nodes = _NNODES.search(job.launcher_cmdline)
    per_node = int(next(number for number in match.groups() if number))
    return per_node * (int(nodes.group(1)) if nodes is not None and match.group(1) else 1)


def _tasks(scene: Scene, job: Job) -> str:
    """`SLURM_NTASKS is 3`, where as many live here and the ranks expect another number."""
    alive = len({fact.pid for fact in scene.of(JobRank)})
    told = {(name, values.get(name)) for values in job.environment.values() for name in _TASKS}
    names = sorted(name for name, count in told if count == str(alive) != str(job.world_size))
    return f"{names[0]} is {alive}" if names else ""


def _weigh(scene: Scene) -> Weighings:
    job, waiting = scene.live, at_the_store(scene)
    if job is None:
        yield from weigh_world(scene)
        for event in scene.events(UNPLACED)[:1]:
            says = f"No node of the cluster has what a worker asks for: {short(event.line, 160)}"
            yield weighing(13, "suspects-log", says, event)
        return
    if not waiting:
        return
    stated, started = _stated(job), _started(job)
    if len(stated) > 1:
        sizes = and_list(
            [
                f"{ranks_say([int(who) for who in whose if who.isdecimal()])} has {size}"
                for size, whose in stated.items()
            ]
        )
        says = f"The ranks do not agree on the size of the world: {sizes}"
        yield weighing(26, "environment-and-limits", says, job)
    if started is not None and job.world_size is not None:
        if started != job.world_size:
            says = (
                f"The launcher starts {started} processes, and the ranks expect {job.world_size}"
                f" ({job.world_size_source or 'by their own words'})"
            )
            yield weighing(13, "environment-and-limits", says, job)
        elif len(stated) < 2:
            says = f"The launcher starts as many processes as the ranks expect: {started}"
            yield weighing(-13, "environment-and-limits", says, job)
            return
    elif job.world_size is not None and (tasks := _tasks(scene, job)):
        says = f"{tasks}, and the ranks expect {job.world_size}: no further one is started"
        yield weighing(13, "environment-and-limits", says, job)
    alive = len(scene.of(JobRank))
    if (
        job.world_size is not None
        and absent(scene)
        and not job.elsewhere
        and alive != job.world_size
    ):
        points = 6 if started == alive or job.launcher in ("bare", "spawn") else 3
        says = f"{alive} processes live here, and each waits for a world of {job.world_size}"
        yield weighing(points, "process-state-and-locks", says, job)
    if len(stated) > 1 or started not in (None, job.world_size) or _tasks(scene, job):
        ranks = [thread.rank or 0 for thread in waiting]
        says = (
            f"{ranks_say(ranks)} {verb(ranks, 'waits', 'wait')} at the rendezvous for ranks that"
            " nobody starts"
        )
        yield weighing(10, "other-stacks", says, *waiting)


def _ranks(scene: Scene) -> tuple[int, ...]:
    """Ranks whose world size is not the common one; else those that nobody started."""
    job = scene.live
    stated = _stated(job) if job is not None else {}
    if len(stated) < 2:
        return absent(scene) if job is not None and not job.elsewhere else ()
    fewest = min(stated.values(), key=len)
    if sum(len(whose) == len(fewest) for whose in stated.values()) == 1:
        return tuple(sorted(int(who) for who in fewest if who.isdecimal()))
    return ()


def _summary(scene: Scene) -> str:
    if scene.live is None and world_summary(scene):
        return world_summary(scene)
    if scene.live is None and (unplaced := scene.events(UNPLACED)):
        return f"No node of the cluster has what a worker asks for: {short(unplaced[0].line, 140)}"
    job = scene.live or Job()
    stated, started = _stated(job), _started(job)
    if len(stated) > 1:
        return f"The ranks were given different world sizes: {and_list(sorted(stated))}"
    alive = started if started is not None else len(scene.of(JobRank))
    missing = _ranks(scene)
    whom = f" for {ranks_say(missing, capital=False)}" if missing else ""
    return (
        f"The job expects {job.world_size} ranks and {alive} were started, so all of them wait at"
        f" the rendezvous{whom}"
    )


PLACE = """
See what is asked for, and what there is
    ray status
Ask for no more than a node has, or start nodes that have it
    fewer GPUs for each worker; ray start --num-gpus <N> where Ray does not see them
"""
NUMBER = """
Let one place say the number
    torchrun --nnodes <N> --nproc-per-node <M> ...   (it sets RANK, WORLD_SIZE and LOCAL_RANK)
Take the number out of the script
    grep -rn 'world_size\\|WORLD_SIZE' *.py *.sh
    init_process_group() without rank and world_size reads the launcher's
"""


def _fixes(scene: Scene) -> Fixes:
    return fixes(PLACE if scene.live is None and scene.events(UNPLACED) else NUMBER)


CAUSE = Cause(
    id="world-size-mismatch",
    title="The world size is not the number of processes started",
    modes=("hang", "crash", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle=(
        "compare WORLD_SIZE of the ranks with the launcher's arguments: tr '\\0' '\\n' <"
        " /proc/<PID>/environ"
    ),
    refines="rendezvous-incomplete",
    accounts_for=("rank-stuck", "user-exception"),
    wording=WORLD,
)
