"""The launcher of some ranks is gone, and the ranks live on.

torchrun's agent of one node was killed, for lack of memory or with a shell that was closed, and the
ranks that it had started are left to themselves. They may train on, but nobody sees one of them
fail, nobody ends or restarts them, and at the end of the job they may stay behind and keep GPUs and
ports. The agents of the other nodes do not know their ends either.

It is recognised by ranks that torchrun has started, as their environment shows, and that have no
torchrun above them any more. Where all wait at the store and the launcher of rank 0 is gone, it is
why they hang: the store went with it.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.network.rendezvous_incomplete import all_at_the_store, at_the_store
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.facts import JobRank
from trainprobe.model.node_names import folded


def _lost(scene: Scene) -> tuple[int, ...]:
    """The ranks that have outlived their launcher."""
    orphaned = scene.live.orphaned if scene.live is not None else ()
    found = (one.rank for one in scene.of(JobRank) if one.rank is not None and one.pid in orphaned)
    return tuple(sorted(found))


def _hosts(scene: Scene) -> str:
    lost = _lost(scene)
    hosts = dict.fromkeys(one.host for one in scene.of(JobRank) if one.rank in lost and one.host)
    return f" on {folded(tuple(hosts))}" if hosts else ""


def _without_store(scene: Scene) -> bool:
    """Do all ranks wait at the store, and is the launcher of rank 0 gone? It serves the store
    unless TORCHELASTIC_USE_AGENT_STORE says otherwise (torch/distributed/elastic/agent/server).
    """
    return (
        scene.group.mode == "hang"
        and 0 in _lost(scene)
        and bool(at_the_store(scene))
        and all_at_the_store(scene)
    )


def _weigh(scene: Scene) -> Weighings:
    ranks = _lost(scene)
    if not ranks or not (scene.group.mode == "check" or _without_store(scene)):
        return
    says = (
        f"{ranks_say(ranks)} {verb(ranks, 'was', 'were')} started by torchrun, and no torchrun"
        f" is above {verb(ranks, 'it', 'them')} any more"
    )
    points = 26 if scene.group.mode == "check" else 13
    yield weighing(points, "process-state-and-locks", says, scene.live)
    if _without_store(scene):
        says = "All ranks wait at the store, which torchrun serves beside rank 0"
        yield weighing(6, "other-stacks", says, *at_the_store(scene))


def _summary(scene: Scene) -> str:
    ranks = _lost(scene)
    gone = f"The launcher of {ranks_say(ranks, capital=False)}{_hosts(scene)} is gone"
    if _without_store(scene):
        return f"{gone}, and with it the store at which all ranks wait"
    return (
        f"{gone}: nobody ends or restarts {verb(ranks, 'it', 'them')} when a rank of the job fails"
    )


FIXES = """
See what ended the launcher
    journalctl -k --since -1h | grep -i -e oom -e killed   ({where})
    read the last lines that it printed: trainprobe explain <OUTPUT>
[disruptive] Start the job again from its newest checkpoint, once that is written
    kill {pids}
Keep the launcher from going with a shell
    run it in a batch job, tmux or a service, not in the background of a login shell
"""


def _fixes(scene: Scene) -> Fixes:
    job = scene.live
    pids = " ".join(str(pid) for pid in job.orphaned[:8]) if job is not None else "<PID>"
    return fixes(FIXES, pids=pids, where=_hosts(scene).strip() or "on its host")


CAUSE = Cause(
    id="launcher-lost",
    title="The launcher of some ranks is gone",
    modes=("check", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    accounts_for=("rendezvous-incomplete",),
    would_settle="ps -o pid,ppid,args of the ranks: is torchrun above them?",
)
