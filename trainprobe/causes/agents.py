"""The launchers of an elastic job, which meet the other nodes' before they start any rank."""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.facts import MainThread
from trainprobe.model.diagnosis import Weighing


def waiting_agents(scene: Scene) -> tuple[MainThread, ...]:
    """Launchers that stand at the rendezvous themselves while no rank lives here; empty where a rank does."""
    if scene.live is None or scene.threads(scene.world):
        return ()
    return tuple(thread for thread in scene.facts.of(MainThread, cell=scene.cell) if thread.role == "launcher" and thread.leaf == "store-wait")


def of_agents(scene: Scene) -> Iterator[Weighing]:
    """What speaks for a rendezvous that other nodes have not come to."""
    job = scene.live
    for agent in waiting_agents(scene):
        yield weighing(13, "other-stacks", f"{job.launcher if job else 'The launcher'} (pid {agent.pid}) stands at the rendezvous", agent)
        if job is not None and (job.nnodes or 1) > 1:
            yield weighing(13, "process-state-and-locks", f"The job is to have {job.nnodes} nodes, and no rank has been started on this one", job)


def said_of_agents(scene: Scene) -> str:
    """The sentence of the cause, empty where no agent waits."""
    job = scene.live
    if job is None or not waiting_agents(scene):
        return ""
    return f"{job.launcher} waits for the agents of the other nodes, of {job.nnodes or 'several'} in all, and has started no rank"
