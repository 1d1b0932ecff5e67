"""A node of the job gives no answer to anybody who asks it, and ranks of the job that must be there
take no part.

It has crashed, is frozen, has lost its network, or swaps so hard that nothing starts on it. The
other ranks wait for its ranks in a collective until the group's timeout.

It is recognised by a look that was sent to every node of the job and came back from the others,
while ranks of the world have no process on any of those. A node that only refused to be looked at
(no such command, no right) says nothing: the job may be well there.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import Rung, SilentNode
from trainprobe.model.ranks import and_list


def _silent(scene: Scene) -> tuple[SilentNode, ...]:
    return tuple(fact for fact in scene.facts.of(SilentNode) if fact.late)


def _missing(scene: Scene) -> tuple[int, ...]:
    """Ranks of this group that have no process on any node that answered."""
    absent = set(scene.live.absent) if scene.live is not None else set()
    rung, hosts = scene.one(Rung), {one.host for one in _silent(scene)}
    return tuple(
        rank
        for rank in scene.ranks
        if rank in absent or (rung is not None and rung.host_of(rank) in hosts)
    )


def _alone(scene: Scene) -> bool:
    """A probe of the host was to run on just such nodes."""
    return (
        not scene.ranks
        and bool(scene.group.hosts)
        and set(scene.group.hosts) <= {one.host for one in _silent(scene)}
    )


def _weigh(scene: Scene) -> Weighings:
    silent, missing = _silent(scene), _missing(scene)
    if not silent or not (missing or _alone(scene)):
        return
    yield weighing(13, "network", "; ".join(one.says for one in silent[:3]), *silent)
    if not missing:
        yield weighing(
            10, "probe-outcome", f"{scene.group.probe} could not even be started there", *silent
        )
        return
    says = (
        f"{ranks_say(missing)} {verb(missing, 'has', 'have')} no process on the nodes that answered"
    )
    yield weighing(10, "process-state-and-locks", says, *silent)
    if scene.group.victims:
        victims = scene.group.victims
        says = f"{ranks_say(victims)} {verb(victims, 'waits', 'wait')} meanwhile"
        yield weighing(6, "other-stacks", says, *silent)


def _hosts(scene: Scene) -> str:
    return and_list([one.host for one in _silent(scene)])


def _summary(scene: Scene) -> str:
    missing, silent = _missing(scene), _silent(scene)
    if not missing:
        return f"{_hosts(scene)} {'does' if len(silent) == 1 else 'do'} not answer"
    return (
        f"{ranks_say(missing)} must be on {_hosts(scene)}, which"
        f" {'does' if len(silent) == 1 else 'do'} not answer"
    )


FIXES = """
See whether it is up
    ping -c 3 {host}; ssh -o ConnectTimeout=5 {host} uptime
    scontrol show node {host}
[disruptive] Start again without it
    sbatch --exclude={hosts} ...
[admin] Have it taken out until it is mended
    scontrol update nodename={host} state=drain reason='does not answer'
"""


def _fixes(scene: Scene) -> Fixes:
    hosts = [node.host for node in _silent(scene)]
    return fixes(FIXES, host=next(iter(hosts), "NODE"), hosts=",".join(hosts))


CAUSE = Cause(
    id="node-not-answering",
    title="A node of the job does not answer",
    modes=("hang", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=lambda scene: _missing(scene) or scene.ranks,
    would_settle="ping and ssh to that node; what the scheduler says of it",
    refines="rank-exited-early",
    accounts_for=("rank-stuck", "rendezvous-incomplete"),
    ready=ReadySigns(says=("does not answer", "do not answer"), hows=("silent",), silence=True),
)
