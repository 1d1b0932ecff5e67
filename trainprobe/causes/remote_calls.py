"""Network calls of a rank to hosts outside the job: threads, clients, connections."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from trainprobe.causes.awaited import JOINS
from trainprobe.causes.child_processes import ends, outward, threads_of
from trainprobe.causes.scene import Scene, user_frame
from trainprobe.facts import Connection, MainThread, Samples
from trainprobe.facts.samples import asking_shares, latest_in, spent_in
from trainprobe.stacks.asking import CLIENTS, in_call
from trainprobe.stacks.classify import classify
from trainprobe.stacks.servers import stands_in

_CALLS = re.compile(
    r"\burlopen$|\burlretrieve$|\b(?:requests|httpx|wandb|mlflow|comet_ml|neptune)\."
    r"|(?i:session|http|client|conn|stub|bucket|s3|blob|api)\w*\."
    r"(?:get|post|put|patch|head|delete|request|send|getresponse|upload|download|query)\w*$"
    r"|\bcreate_connection$|hf_hub_download|snapshot_download"
)
SENDS_ON_S = 1.0
MOSTLY = 0.7  # of a rank's own time
SILENT = frozenset({"ESTAB", "SYN_SENT", "CLOSE_WAIT"})


def talking(scene: Scene) -> tuple[MainThread, ...]:
    """Threads at the end of the suspects' waiting that stand in a network call of their own, or
    join a thread that does, which is shown in their place.
    """
    found = [
        thread
        for thread in map(partial(_joined, scene), ends(scene))
        if thread.leaf == "net-io"
        and thread.op not in ("connection", "accept")  # who accepts asked nobody
        and thread.moved is not True
    ]
    return tuple(
        thread
        for thread in found
        if not any("multiprocessing/" in frame.file for frame in thread.frames[-3:])
    )


def _joined(scene: Scene, thread: MainThread) -> MainThread:
    if not any(stands_in(frame, JOINS) for frame in thread.frames):
        return thread
    calls = [other for other in threads_of(scene, thread.pid) if in_call(other.frames)]
    if len(calls) != 1:
        return thread
    frames = calls[0].frames
    placed, user = classify(frames), user_frame(frames)
    where = user.where if user is not None else thread.where
    return replace(thread, frames=frames, where=where, leaf=placed.leaf, op=placed.op)


def tried_again(scene: Scene, thread: MainThread) -> str:
    """The network call between whose tries a thread sleeps; "" where it tries none."""
    frame = user_frame(thread.frames)
    site = scene.site(frame.file, frame.line) if frame is not None else None
    found = (name for name in site.tries.split("; ") if _CALLS.search(name)) if site else ()
    return next(iter(found), "")


def retrying(scene: Scene) -> tuple[MainThread, ...]:
    """Threads at the end of the suspects' waiting that sleep between tries of a network call."""
    return tuple(
        thread for thread in ends(scene) if thread.leaf != "net-io" and tried_again(scene, thread)
    )


def client(thread: MainThread) -> str:
    """The outermost client library on a stack, such as wandb."""
    for frame in thread.frames:
        match = CLIENTS.search(frame.file)
        if match is not None:
            return next(part for part in match.groups() if part)
    return ""


def late_by_calls(scene: Scene, rank: int | None) -> float | None:
    """The share of its own time that the rank for which the others wait in every round spends in
    network calls; None where that is not most of it, or the rank another one.
    """
    samples = scene.of(Samples)
    seen = latest_in(samples) if scene.group.mode == "slow" else None
    if seen is None or rank is None or seen.latest != rank:
        return None
    share = spent_in(samples, rank, "net-io")
    return share if share >= MOSTLY else None


def asked_by_all(scene: Scene) -> float | None:
    """The least share of the sampled time that a rank of a slow job spends on calls to a service,
    where that is most of it on each.
    """
    if scene.group.mode != "slow" or scene.ranks:
        return None
    shares = [share for share, _ in asking_shares(scene.of(Samples)).values()]
    return min(shares) if shares and min(shares) >= MOSTLY else None


def sends_on(connection: Connection) -> bool:
    """Has it brought or taken data within the last second, so that somebody is there?"""
    return connection.silent_s is not None and connection.silent_s < SENDS_ON_S


def connections(scene: Scene) -> tuple[Connection, ...]:
    """Their connections to somebody outside the job, unanswered ones first."""
    found = [
        one
        for one in outward(scene, [thread.pid for thread in talking(scene)])
        if one.state in SILENT
    ]
    return tuple(sorted(found, key=lambda one: one.state != "SYN_SENT"))
