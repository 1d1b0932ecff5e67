"""The ranks do not all meet: some never come to the rendezvous.

A node that was not started, a rank that died before it connected, an end point that only some can reach: those that came wait at the store until
its time-out, and no collective has begun.

It is recognised by ranks that stand in `init_process_group` or at the store while ranks of the world are nowhere to be seen. A rank that is seen
elsewhere, in code of its own, is late for a reason that other causes name; a rank that has been in a collective already was at the rendezvous.
A launcher that waits there itself, before it has started any rank, waits for other nodes. In logs it is told by the rendezvous' own errors, by a store
that refuses connections, and by a remote shell that could not start the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.agents import of_agents, said_of_agents, waiting_agents
from trainprobe.causes.cause import Cause
from trainprobe.causes.meeting_told import GAVE_UP, end_point, fixes_of_start, said_of_gave_up, weigh_gave_up
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.words import fix, ranks_say, sentence, verb
from trainprobe.facts import CollectiveCall, Facts, MainThread
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

JOINING = frozenset({"init_process_group", "rendezvous", "native", "store"})


def at_the_store(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks that stand at the rendezvous; one that asks the store for a key of its own is past it."""
    return tuple(thread for thread in scene.threads(scene.world) if thread.leaf == "store-wait" and thread.op in JOINING)


def absent(scene: Scene) -> tuple[int, ...]:
    """Ranks of the world that no process was found for."""
    job = scene.live
    seen = {thread.rank for thread in scene.threads(scene.world)} | {rank for rank in scene.world if scene.process(rank) is not None}
    named = set(job.absent) if job is not None else {rank for rank in scene.group.ranks if scene.group.how == "not-visible"}
    return tuple(sorted(named - seen))


def all_together(scene: Scene) -> bool:
    """Do all ranks of a world of several stand at one line of the rendezvous? Then none of them is the odd one."""
    waiting = at_the_store(scene)
    return len(waiting) == len(scene.world) > 1 and len({(thread.user_file, thread.user_line) for thread in waiting}) == 1


def past_rendezvous(scene: Scene) -> bool:
    """Is a rank beyond the start of the job: in a collective, in its training loop, or at the store with a call of its own?"""
    threads = scene.threads(scene.world)
    joining = [thread for thread in threads if thread.leaf == "store-wait" and thread.op in JOINING]
    return bool(threads) and not joining


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from of_agents(scene)
    waiting, missing = at_the_store(scene), absent(scene)
    if group.mode == "crash":
        yield from weigh_gave_up(scene)
        return
    if not waiting:
        if scene.live is None:
            yield from weigh_gave_up(scene)
        return
    ranks = [thread.rank or 0 for thread in waiting]
    points = 13 if len(waiting) == len(scene.threads(scene.world)) else 3
    everybody = len(ranks) == len(scene.world) > 1
    who = f"All {len(ranks)} ranks of the world" if everybody else f"{ranks_say(ranks)}, {len(ranks)} of {len(scene.world)} ranks,"
    yield weighing(points, "other-stacks", f"{who} {verb(ranks, 'stands', 'stand')} at the rendezvous", *waiting)
    job = scene.live
    if missing and job is not None:
        where = (
            "may live on another host" if job.elsewhere else f"{verb(missing, 'does', 'do')} not live on {'any host of the job' if job.hosts else 'this host'}"
        )
        yield weighing(13, "process-state-and-locks", f"{ranks_say(missing)} of a world of {job.world_size} {where}", job)
    elif len(scene.threads(scene.world)) > len(waiting):
        others = [thread for thread in scene.threads(scene.world) if thread.leaf != "store-wait"]
        yield weighing(-13, "process-state-and-locks", f"{ranks_say([t.rank or 0 for t in others])} lives and stands elsewhere", *others)
    met = [call for rank in ranks for call in facts.of(CollectiveCall, cell=group.cell, rank=rank) if call.finished]
    if met:
        yield weighing(-26, "flight-recorder", f"{ranks_say(ranks)} had finished collectives before", *met[:2])


def _ranks(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    scene = Scene(facts, group)
    if waiting_agents(scene):
        return group.ranks
    return absent(scene) or (() if all_together(scene) else group.ranks)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    missing = absent(scene)
    there = [thread.rank or 0 for thread in at_the_store(scene)]
    if not missing and all_together(scene) and not waiting_agents(scene):
        where = next((f" at {thread.where}" for thread in at_the_store(scene) if thread.where), "")
        return sentence(f"All {len(there)} ranks wait at the rendezvous{where}: they ask for another world than this one, or for a store that nobody serves")
    told = said_of_gave_up(scene) if scene.live is None and not there else ""
    if told:
        return told
    if not missing or waiting_agents(scene):
        return sentence(said_of_agents(scene) or f"{ranks_say(there)} {verb(there, 'waits', 'wait')} at the rendezvous, and not everybody comes")
    elsewhere = (
        "other nodes' ranks may not have started"
        if scene.live is not None and scene.live.elsewhere
        else f"no process of theirs lives {'on any host that answered' if scene.live is not None and scene.live.hosts else 'here'}"
    )
    return sentence(f"{ranks_say(missing)} never came to the rendezvous, where {ranks_say(there, capital=False)} {verb(there, 'waits', 'wait')}: {elsewhere}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    job = scene.live
    environment = next(iter(job.environment.values()), {}) if job is not None else {}
    address, port = environment.get("MASTER_ADDR", "$MASTER_ADDR"), environment.get("MASTER_PORT", "$MASTER_PORT")
    if job is None:
        address, port = (said or default for said, default in zip(end_point(scene), (address, port), strict=True))
    if fixes_of_start(scene):
        return fixes_of_start(scene)
    slurm = job is not None and (job.launcher == "slurm" or any(name.startswith("SLURM_") for row in job.environment.values() for name in row))
    if all_together(scene) and not absent(scene) and not waiting_agents(scene):
        own = f"a world_size, rank, address or port given to init_process_group must be that of the launcher: WORLD_SIZE={len(scene.world)}, {address}:{port}"
        return (
            fix(
                scene,
                "Let the launcher say who meets where",
                own,
                'under torchrun: dist.init_process_group(backend), with nothing of these, or init_method="env://"',
            ),
            fix(scene, "See whether anybody serves the store", f"ss -ltnp | grep -w {port}; timeout 5 bash -c '</dev/tcp/{address}/{port}' && echo open"),
        )
    return (
        fix(
            scene,
            "Start the ranks that are missing, or see why they died",
            "on the other nodes: trainprobe attach"
            if job is None or not job.hosts or job.elsewhere
            else "read what they printed last: trainprobe explain <OUTPUT>",
            "squeue -s; scontrol show job $SLURM_JOB_ID" if slurm else "",
        ),
        fix(scene, "See whether they can reach the end point", f"from another node: timeout 5 bash -c '</dev/tcp/{address}/{port}' && echo open"),
        fix(scene, "Give all nodes the same end point", f"torchrun --nnodes <N> --rdzv-backend c10d --rdzv-endpoint {address}:{port} --rdzv-id <JOB> ..."),
    )


CAUSE = Cause(
    id="rendezvous-incomplete",
    title="Not all ranks came to the rendezvous",
    means="The nodes do not all meet, for a reason that no other cause names.",
    telling="Ranks stand at the store or in init_process_group while ranks of the world are nowhere to be seen.",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    would_settle="count the processes of the job on every node: trainprobe attach there",
    refines="rank-stuck",
    accounts_for=("user-exception",),
    wording=GAVE_UP,
)
