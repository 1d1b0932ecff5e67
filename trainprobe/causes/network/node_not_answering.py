"""A node of the job gives no answer to anybody who asks it, and ranks of the job that must be there take no part.

It has crashed, is frozen, has lost its network, or swaps so hard that nothing starts on it. The other ranks wait for its ranks in a collective until
the group's timeout.

It is recognised by a look that was sent to every node of the job and came back from the others, while ranks of the world have no process on any of
those. A node that only refused to be looked at (no such command, no right) says nothing: the job may be well there.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, listed, ranks_say, sentence, verb
from trainprobe.facts import Facts, Rung, SilentNode
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup


def _silent(scene: Scene) -> tuple[SilentNode, ...]:
    return tuple(one for one in scene.facts.of(SilentNode) if one.late)


def _missing(scene: Scene) -> tuple[int, ...]:
    """Ranks of this group that have no process on any node that answered."""
    absent = set(scene.live.absent) if scene.live is not None else set()
    rung, hosts = scene.facts.one(Rung, cell=scene.cell), {one.host for one in _silent(scene)}
    return tuple(rank for rank in scene.group.ranks if rank in absent or (rung is not None and rung.host_of(rank) in hosts))


def _alone(scene: Scene) -> bool:
    """A probe of the host was to run on just such nodes."""
    return not scene.group.ranks and bool(scene.group.hosts) and set(scene.group.hosts) <= {one.host for one in _silent(scene)}


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    silent, missing = _silent(scene), _missing(scene)
    if not silent or not (missing or _alone(scene)):
        return
    yield weighing(13, "network", "; ".join(one.says for one in silent[:3]), *silent)
    if not missing:
        yield weighing(10, "probe-outcome", f"{scene.group.probe} could not even be started there", *silent)
        return
    yield weighing(10, "process-state-and-locks", f"{ranks_say(missing)} {verb(missing, 'has', 'have')} no process on the nodes that answered", *silent)
    if group.victims:
        yield weighing(6, "other-stacks", f"{ranks_say(group.victims)} {verb(group.victims, 'waits', 'wait')} meanwhile", *silent)


def _hosts(scene: Scene) -> str:
    return listed([one.host for one in _silent(scene)])


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    missing, silent = _missing(scene), _silent(scene)
    if not missing:
        return sentence(f"{_hosts(scene)} {'does' if len(silent) == 1 else 'do'} not answer")
    return sentence(f"{ranks_say(missing)} must be on {_hosts(scene)}, which {'does' if len(silent) == 1 else 'do'} not answer")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    host = next((one.host for one in _silent(scene)), "NODE")
    return (
        fix(scene, "See whether it is up", f"ping -c 3 {host}; ssh -o ConnectTimeout=5 {host} uptime", f"scontrol show node {host}"),
        fix(scene, "Start again without it", f"sbatch --exclude={','.join(one.host for one in _silent(scene))} ...", risk="disruptive"),
        fix(
            scene,
            "Have it taken out until it is mended",
            f"scontrol update nodename={host} state=drain reason='does not answer'",
            risk="needs-admin",
            who="admin",
        ),
    )


CAUSE = readied(
    Cause(
        id="node-not-answering",
        title="A node of the job does not answer",
        means="A node has crashed, is frozen or has lost its network, and the ranks on it take no part any more.",
        telling="A look at every node of the job that one of them gives no answer to, while ranks have no process on the others.",
        modes=("hang", "crash"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=lambda facts, group: _missing(Scene(facts, group)) or group.ranks,
        would_settle="ping and ssh to that node; what the scheduler says of it",
        refines="rank-exited-early",
        accounts_for=("rank-stuck", "rendezvous-incomplete"),
    ),
    Signs(says=("does not answer", "do not answer"), hows=("silent",), silence=True),
)
