"""The ranks do not all meet: some never come to the rendezvous.

A node that was not started, a rank that died before it connected, an end point that only some can
reach: those that came wait at the store until its time-out, and no collective has begun.

It is recognised by ranks that stand in `init_process_group` or at the store while ranks of the
world are nowhere to be seen. A rank that is seen elsewhere, in code of its own, is late for a
reason that other causes name; a rank that has been in a collective already was at the rendezvous. A
launcher that waits there itself, before it has started any rank, waits for other nodes. Ranks that
were told another address or port than the rest wait at another place. In logs it is told by the
rendezvous' own errors, by a store that refuses connections, and by a remote shell that could not
start the others.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.group_numbers import number_facts, numbers_say
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, verb
from trainprobe.causes.rendezvous_failures import (
    GAVE_UP,
    end_point,
    fixes_of_start,
    giving_up_summary,
    weigh_gave_up,
    weigh_missing_node,
    weigh_who_came,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import CollectiveCall, JobRank, MainThread
from trainprobe.model.ranks import and_list
from trainprobe.waits.launching import Away, agents_away
from trainprobe.waits.meeting import ToldApart, is_loopback, ranks_told_apart, told_apart
from trainprobe.waits.meeting import end_point as told_end_point

# Where ranks meet: at the start, and for each further group.
JOINING = frozenset(
    {
        "init_process_group",
        "rendezvous",
        "native",
        "store",
        "new_group",
        "new_group_with_tag",
        "split_group",
        "new_subgroups",
        "new_subgroups_by_enumeration",
        "new_process_group_helper",
        "store_based_barrier",
    }
)


def at_the_store(scene: Scene) -> tuple[MainThread, ...]:
    """Ranks at the rendezvous; one that asks the store for its own key is past it."""
    return tuple(
        thread
        for thread in scene.threads(scene.world)
        if thread.leaf == "store-wait" and thread.op in JOINING
    )


def absent(scene: Scene) -> tuple[int, ...]:
    """Ranks of the world that no process was found for."""
    job = scene.live
    shown = {thread.rank for thread in scene.threads(scene.world)} | {
        rank for rank in scene.world if scene.process(rank) is not None
    }
    named = (
        set(job.absent)
        if job is not None
        else {rank for rank in scene.ranks if scene.group.how == "not-visible"}
    )
    return tuple(sorted(named - shown))


def all_together(scene: Scene) -> bool:
    """Do all of several ranks stand at one line of the rendezvous? Then none is the odd one."""
    waiting = at_the_store(scene)
    return (
        len(waiting) == len(scene.world) > 1
        and len({(thread.user_file, thread.user_line) for thread in waiting}) == 1
    )


def told_elsewhere(scene: Scene) -> ToldApart | None:
    """Ranks at the rendezvous whose MASTER_ADDR or MASTER_PORT is not that of the rest."""
    if scene.live is None or not all_at_the_store(scene):
        return None
    return ranks_told_apart(
        scene.live, {one.rank: one.host for one in scene.of(JobRank) if one.rank is not None}
    )


def all_at_the_store(scene: Scene) -> bool:
    return len(at_the_store(scene)) == len(scene.threads(scene.world))


def past_rendezvous(scene: Scene) -> bool:
    """Is a rank past the start: in a collective, in its loop, or at the store by itself?"""
    threads = scene.threads(scene.world)
    joining = [thread for thread in threads if thread.leaf == "store-wait" and thread.op in JOINING]
    return bool(threads) and not joining


def _weigh(scene: Scene) -> Weighings:
    yield from of_agents(scene)
    waiting, missing = at_the_store(scene), absent(scene)
    if scene.group.mode == "crash":
        yield from weigh_gave_up(scene)
        return
    if not waiting:
        if scene.live is None:
            yield from weigh_gave_up(scene)
            yield from weigh_who_came(scene)
            yield from weigh_missing_node(scene)
        return
    ranks = [thread.rank or 0 for thread in waiting]
    points = 13 if len(waiting) == len(scene.threads(scene.world)) else 3
    everybody = len(ranks) == len(scene.world) > 1
    who = (
        f"All {len(ranks)} ranks of the world"
        if everybody
        else f"{ranks_say(ranks)}, {len(ranks)} of {len(scene.world)} ranks,"
    )
    says = f"{who} {verb(ranks, 'stands', 'stand')} at the rendezvous"
    yield weighing(points, "other-stacks", says, *waiting)
    if numbers := number_facts(scene):
        says = f"All have met before: {numbers_say(scene)}"
        yield weighing(-26, "suspects-stack", says, *numbers)
    job = scene.live
    if (apart := told_elsewhere(scene)) is not None:
        says = (
            f"{apart.name} is {apart.value} for {ranks_say(apart.ranks, capital=False)} and"
            f" {apart.common} for the others"
        )
        yield weighing(26 if apart.sure else 6, "environment-and-limits", says, job)
    if missing and job is not None:
        where = (
            "may live on another host"
            if job.elsewhere
            else (
                f"{verb(missing, 'does', 'do')} not live on"
                f" {'any host of the job' if job.hosts else 'this host'}"
            )
        )
        says = f"{ranks_say(missing)} of a world of {job.world_size} {where}"
        yield weighing(13, "process-state-and-locks", says, job)
    elif len(scene.threads(scene.world)) > len(waiting):
        others = [thread for thread in scene.threads(scene.world) if thread.leaf != "store-wait"]
        says = f"{ranks_say([t.rank or 0 for t in others])} lives and stands elsewhere"
        yield weighing(-13, "process-state-and-locks", says, *others)
    met = [call for rank in ranks for call in scene.of(CollectiveCall, rank=rank) if call.finished]
    if met:
        yield weighing(
            -26, "flight-recorder", f"{ranks_say(ranks)} had finished collectives before", *met[:2]
        )


def _ranks(scene: Scene) -> tuple[int, ...]:
    if waiting_agents(scene):
        return scene.ranks
    if (apart := told_elsewhere(scene)) is not None:
        return apart.ranks
    return absent(scene) or (() if all_together(scene) else scene.ranks)


def _summary(scene: Scene) -> str:
    missing = absent(scene)
    there = [thread.rank or 0 for thread in at_the_store(scene)]
    if (apart := told_elsewhere(scene)) is not None:
        hosts = f" on {and_list(scene.group.hosts)}" if scene.group.hosts else ""
        have = verb(apart.ranks, "has", "have")
        return (
            f"{ranks_say(apart.ranks)}{hosts} {have} {apart.name} {apart.value} and the other ranks"
            f" {apart.common}, so they wait for each other at two places"
        )
    if not missing and all_together(scene) and not waiting_agents(scene):
        where = next((f" at {thread.where}" for thread in at_the_store(scene) if thread.where), "")
        return (
            f"All {len(there)} ranks wait at the rendezvous{where}: they ask for another world than"
            " this one, or for a store that nobody serves"
        )
    reported = giving_up_summary(scene) if scene.live is None and not there else ""
    if reported:
        return reported
    if not missing or waiting_agents(scene):
        wait = f"{ranks_say(there)} {verb(there, 'waits', 'wait')} at the rendezvous"
        return agents_summary(scene) or f"{wait}, and not everybody comes"
    elsewhere = (
        "other nodes' ranks may not have started"
        if scene.live is not None and scene.live.elsewhere
        else (
            "no process of theirs lives"
            f" {'on any host that answered' if scene.live is not None and scene.live.hosts else 'here'}"  # noqa: E501
        )
    )
    return (
        f"{ranks_say(missing)} never came to the rendezvous, where"
        f" {ranks_say(there, capital=False)} {verb(there, 'waits', 'wait')}: {elsewhere}"
    )


TOGETHER = """
Let the launcher say who meets where
    a world_size, rank, address or port given to init_process_group must be that of the launcher:
        WORLD_SIZE={world}, {address}:{port}
    under torchrun: dist.init_process_group(backend), with nothing of these, or init_method="env://"
See whether anybody serves the store
    ss -ltnp | grep -w {port}; timeout 5 bash -c '</dev/tcp/{address}/{port}' && echo open
"""
APART = """
Tell all agents of the job the same; only the number of the node differs
    torchrun --nnodes <N> --rdzv-backend c10d --rdzv-endpoint <HOST>:<PORT> --rdzv-id <JOB> ...
    draw a random id or port once, before the agents are started, not in each of them
"""
LOOPBACK = """
Give all agents the address of one host, here {host}'s
    --rdzv-endpoint {host}:{port}
    in SLURM, in the script: $(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
"""
ONE_PLACE = """
Give every rank the same {name}
    export {name}={common}   (once, in the job script, not on each node)
See which host that name is on each node
    getent hosts $MASTER_ADDR
"""
FIXES = """
Start the ranks that are missing, or see why they died
    {look}
    {slurm}
See whether they can reach the end point
    {node}: getent hosts {address}; timeout 5 bash -c '</dev/tcp/{address}/{port}' && echo open
Give all nodes the same end point
    torchrun --nnodes <N> --rdzv-backend c10d --rdzv-endpoint {address}:{port} --rdzv-id <JOB> ...
"""


def _fixes(scene: Scene) -> Fixes:
    if own := fixes_of_start(scene):
        return own
    job = scene.live
    host, number = end_point(scene) if job is None else told_end_point(job)
    address, port = host or "$MASTER_ADDR", number or "$MASTER_PORT"
    if (apart := told_elsewhere(scene)) is not None:
        return fixes(ONE_PLACE, name=apart.name, common=apart.common)
    if _told_apart(scene):
        return fixes(APART)
    if (away := _agents_away(scene)) is not None and is_loopback(address):
        return fixes(LOOPBACK, host=away.hosts[0], port=port)
    if all_together(scene) and not absent(scene) and not waiting_agents(scene):
        return fixes(TOGETHER, world=len(scene.world), address=address, port=port)
    look, slurm = "on the other nodes: trainprobe attach", ""
    if job is not None and job.hosts and not job.elsewhere:
        look = "read what they printed last: trainprobe explain <OUTPUT>"
    if job is not None:
        names = {name for row in job.environment.values() for name in row}
        if job.launcher == "slurm" or any(name.startswith("SLURM_") for name in names):
            slurm = "squeue -s; scontrol show job $SLURM_JOB_ID"
    away = _agents_away(scene)
    node = f"on {and_list(away.hosts)}" if away is not None else "from another node"
    return fixes(FIXES, look=look, slurm=slurm, address=address, port=port, node=node)


# The launchers of an elastic job, which meet the other nodes' before they start any rank.
def waiting_agents(scene: Scene) -> tuple[MainThread, ...]:
    """Launchers at the rendezvous while no rank lives here; empty if one does."""
    if scene.live is None or scene.threads(scene.world):
        return ()
    return tuple(
        thread
        for thread in scene.of(MainThread)
        if thread.role == "launcher" and thread.leaf == "store-wait"
    )


def of_agents(scene: Scene) -> Weighings:
    """What speaks for a rendezvous that other nodes have not come to."""
    job = scene.live
    for agent in waiting_agents(scene):
        says = (
            f"{job.launcher if job else 'The launcher'} (pid {agent.pid}) stands at the rendezvous"
        )
        yield weighing(13, "other-stacks", says, agent)
        if job is not None and (job.nnodes or 1) > 1:
            says = (
                f"The job is to have {job.nnodes} nodes, and no rank has been started on this one"
            )
            yield weighing(13, "process-state-and-locks", says, job)
    if (away := _agents_away(scene)) is not None:
        says = f"{away.says[:1].upper()}{away.says[1:]}"
        yield weighing(10, "other-stacks", says, ids=away.evidence)
    if differing := _told_apart(scene):
        says = f"The agents here were not told the same: {differing}"
        yield weighing(10, "environment-and-limits", says, job)


def _agents_away(scene: Scene) -> Away | None:
    """The hosts whose agents do not come to the others, where that was seen."""
    agents = waiting_agents(scene)
    if scene.live is None or not agents:
        return None
    return agents_away(scene.facts, scene.live, agents)


def _told_apart(scene: Scene) -> str:
    """In what the agents that wait here differ; empty where they were told the same."""
    if scene.live is None:
        return ""
    found = told_apart(scene.live, [agent.pid for agent in waiting_agents(scene)])
    return ", ".join(f"--{name} {' and '.join(values)}" for name, values in found.items())


def agents_summary(scene: Scene) -> str:
    """The sentence of the cause, empty where no agent waits."""
    job = scene.live
    agents = waiting_agents(scene)
    if job is None or not agents:
        return ""
    if len({agent.pid for agent in agents}) > 1:
        differing, away = _told_apart(scene), _agents_away(scene)
        where = f"and were not told the same: {differing}" if differing else "for each other"
        return (
            f"{len({agent.pid for agent in agents})} agents of {job.launcher} wait here"
            f" {where}; the job is to have {job.nnodes or 'several'} nodes, and no rank has been"
            f" started{f'; {away.says}' if away is not None else ''}"
        )
    return (
        f"{job.launcher} waits for the agents of the other nodes, of {job.nnodes or 'several'} in"
        " all, and has started no rank"
    )


CAUSE = Cause(
    id="rendezvous-incomplete",
    title="Not all ranks came to the rendezvous",
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
