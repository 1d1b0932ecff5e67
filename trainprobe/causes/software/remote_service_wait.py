"""A rank waits for a service outside the job: a tracker, an object store, a licence or a metadata
server.

wandb, mlflow, cloud storage and plain HTTP clients often have no time limit. When the service is
slow or gone, the one rank that talks to it stands in a read or a connect, and the others wait in
their next collective.

It is recognised by a stack that ends in a client library or a socket in all looks, and by that
process's connection to an address that is no rank of the job: open and silent, still trying to
connect, or one on which data comes without an end while all wait. Where that thread moves on, bytes
that arrive between the looks speak against it. Who sleeps in a loop that tries a network call waits
for the service too. One that answers slowly makes its rank late to each collective, or all ranks
slow: samples show that their own time goes to such calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import others_wait, who
from trainprobe.causes.phrases import Fixes, fix, fixes, short
from trainprobe.causes.remote_calls import (
    asked_by_all,
    client,
    connections,
    late_by_calls,
    retrying,
    sends_on,
    talking,
    tried_again,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import first_of
from trainprobe.causes.slow_lines import SlowLine, slow_line
from trainprobe.causes.statements import first_to_fail, last_line, quote, statement, weigh_statement
from trainprobe.facts import Connection, LogEvent, LogProgress, Samples
from trainprobe.facts.samples import own_line
from trainprobe.signatures.messages import message

# wandb 0.10 to 0.22, mlflow 1 to 3, comet, neptune, clearml, botocore, gcsfs, azure-core.
_TRACKERS = (
    r"(?:api\.wandb\.ai|/api/2\.[01]/mlflow|api\.comet|comet\.com|app\.neptune\.ai|api\.clear\.ml)"
)
WORDING = message("remote-service-wait")
RAISED = (
    "CommError",
    "InitStartError",
    "ServiceStartTimeoutError",
    "ServiceStartProcessError",
    "MailboxError",
    "HandleAbandonedError",
)
WAITS = message("remote-service-wait.waits")
RETRIES = re.compile(r"entering retry loop")
# What wandb.init prints when it comes back (wandb 0.10 to 0.22, sdk/wandb_run.py).
BEGUN = r"wandb: (?:Tracking run with|Run data is saved|Syncing run|.{0,8} ?View (?:run|project) )"
NEAR = 40  # lines


def _of_all(scene: Scene) -> Weighings:
    """A slow job whose ranks all spend their steps on calls."""
    if (least := asked_by_all(scene)) is not None:
        place, share, _ = own_line(scene.of(Samples))
        shown = scene.of(Samples)
        says = f"Samples show all ranks in network calls for {least:.0%} of the time or more"
        yield weighing(13, "suspects-stack", says, *shown)
        says = f"The line {place} takes {share:.0%} of the time, and torch is not at work below it"
        yield weighing(6, "other-stacks", says, *shown)
    elif (line := _asked_by_threads(scene)) is not None:
        says = (
            f"All ranks wait at {line.place} for {line.share:.0%} of the time, while threads of"
            " theirs are in network calls"
        )
        yield weighing(13, "suspects-stack", says, *line.samples)
        says = "Torch is not at work below that line"
        yield weighing(6, "other-stacks", says, *scene.threads(scene.world))


def _asked_by_threads(scene: Scene) -> SlowLine | None:
    """The line at which all ranks wait for threads of their own that ask a service."""
    line = slow_line(scene)
    return line if line is not None and line.asks else None


def _of_retries(scene: Scene) -> Weighings:
    """Somebody sleeps before it asks once more."""
    for thread in retrying(scene)[:1]:
        says = (
            f"{who(thread)} sleeps at {thread.where} between tries of"
            f" {tried_again(scene, thread)}, in {thread.looks} looks"
        )
        yield weighing(13, "suspects-stack", says, thread)
        yield from others_wait(scene)


def _begun(scene: Scene) -> bool:
    """Has the run begun by what was printed: a step was made, or the tracker told where it is?"""
    stepped = any(one.step or one.marks for one in scene.of(LogProgress))
    return stepped or last_line(scene, BEGUN, within=NEAR) is not None


def _weigh(scene: Scene) -> Weighings:
    threads = talking(scene)
    stated, waited = tuple(weigh_statement(scene, WORDING)), statement(scene, WAITS)
    yield from stated
    origin = scene.origin
    if (
        not stated
        and origin is not None
        and origin.type.rsplit(".", 1)[-1] in RAISED
        and any("wandb" in frame.file for frame in origin.frames)
    ):
        yield weighing(26, "suspects-log", f"The tracker's client raised {origin.type}", origin)
        yield from first_to_fail(scene)
    if stated and scene.group.mode == "crash":
        yield from first_to_fail(scene)
    elif not stated and waited is not None and scene.group.mode == "hang" and not threads:
        # Every run with wandb prints it; only as the last line does it tell anything. A retry is
        # made beside the training, which goes on, but at the start of a run it holds that up.
        last = last_line(scene, WAITS)
        blocks = last is not None and not RETRIES.search(last[1])
        begins = last is not None and not _begun(scene)
        yield quote(13 if blocks or begins else 3, "The output says", waited)
    if not threads:
        yield from _of_retries(scene)
        return
    first = threads[0]
    library = client(first)
    points = 6
    if first.moved is False and (library or first.op not in ("poll", "select", "asyncio")):
        points = 13
    via = f" of {library}" if library else f" ({first.op})" if first.op else ""
    says = f"{who(first)} stands in a network call{via} at {first.where} in {first.looks} looks"
    yield weighing(points, "suspects-stack", says, *threads)
    if (late := late_by_calls(scene, first.rank)) is not None:
        says = f"Samples show it in network calls for {late:.0%} of its own time"
        yield weighing(13, "suspects-stack", says, *scene.of(Samples, rank=first.rank))
    found = connections(scene)
    if found:
        words, points = "holds a silent connection to", 10
        if found[0].state == "SYN_SENT":
            words = "has had no answer to its connect to"
        elif sends_on(found[0]):  # a stream without an end, or a slow answer
            words, points = "still exchanges data with", 6
        yield weighing(
            points,
            "network",
            f"It {words} {found[0].remote}, which is {_whose(found[0])}",
            found[0],
        )
    elif scene.looked("sockets"):
        yield weighing(-6, "network", "It has no connection to anybody outside the job", *threads)
    waits = [event for event in scene.of(LogEvent) if event.event == "tracker-wait"]
    if waits:
        yield weighing(10, "suspects-log", f"The output says: {waits[-1].line[:100]}", waits[-1])
    process = scene.process_of(first.pid)
    if process is not None and process.read_moved and first.moved is not False:
        yield weighing(
            -10, "process-state-and-locks", "Bytes still arrive between the looks", process
        )
    yield from others_wait(scene)


def _whose(connection: Connection) -> str:
    if connection.peer_pid:
        return f"pid {connection.peer_pid} ({connection.peer[:60]})"
    return "no process of this job"


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(thread.pid for thread in talking(scene))


def _summary(scene: Scene) -> str:
    stated = statement(scene, WORDING) or statement(scene, WAITS)
    if (least := asked_by_all(scene)) is not None:
        place, _, _ = own_line(scene.of(Samples))
        return (
            f"All ranks wait for a service in {least:.0%} of the time or more, at {place}: the job"
            " goes on, but each step waits for its answers"
        )
    if (line := _asked_by_threads(scene)) is not None:
        return (
            f"All ranks wait at {line.place} for {line.share:.0%} of the time for answers of a"
            " service, for which threads of theirs have asked"
        )
    if not talking(scene) and (again := retrying(scene)):
        return (
            f"{who(again[0])} asks a service again and again, at {again[0].where}: it sleeps"
            f" between calls of {tried_again(scene, again[0])}, and none ends that"
        )
    if not talking(scene):
        return (
            "A tracking or storage service outside the job does not answer:"
            f" {short(stated.text, 140) if stated is not None else 'its client gave up'}"
        )
    first, found = talking(scene)[0], connections(scene)
    what = f"{client(first)} at {first.where}" if client(first) else first.where or "a network call"
    if (late := late_by_calls(scene, first.rank)) is not None:
        service = found[0].remote if found else "a service"
        return (
            f"{who(first)} is the last to come to the collectives, for it waits in {what} for"
            f" {service} in {late:.0%} of its own time"
        )
    if found and sends_on(found[0]):
        return (
            f"{who(first)} is inside one call of {what} with {found[0].remote}, where data still"
            " comes but no end of it"
        )
    return (
        f"{who(first)} waits in {what} for {found[0].remote if found else 'a service'}, which does"
        " not answer"
    )


FIXES = """
Train without it
    {without}
Give the call an end
    pass timeout=30 to the client, or do it in a thread that training does not wait for
    a stream without an end keeps any timeout from firing: read(MOST_BYTES) ends it
"""
# Services that say their name, with their address and what leaves them out.
SERVICES: Mapping[str, tuple[str, str]] = {
    "wandb": ("https://api.wandb.ai", "export WANDB_MODE=offline"),
    "mlflow": ("$MLFLOW_TRACKING_URI", "export MLFLOW_TRACKING_URI=file:./mlruns"),
    "comet": ("https://www.comet.com", "OfflineExperiment in place of Experiment"),
    "neptune": ("https://app.neptune.ai", 'neptune.init_run(mode="offline")'),
    "clearml": ("https://api.clear.ml", "export CLEARML_OFFLINE_MODE=1"),
    "huggingface": ("https://huggingface.co", "export HF_HUB_OFFLINE=1"),
}
_URL = re.compile(r"https?://[\w.:-]{1,200}")


def _said(scene: Scene) -> str:
    stated = statement(scene, WORDING) or statement(scene, WAITS)
    frames = scene.origin.frames if scene.origin is not None else ()
    called = (client(thread) for thread in talking(scene))
    return " ".join([stated.text if stated is not None else "", *called, *(f.file for f in frames)])


def _service(scene: Scene) -> tuple[str, str] | None:
    said = _said(scene).lower()
    return next((service for name, service in SERVICES.items() if name in said), None)


def _address(scene: Scene) -> str:
    named, service = _URL.search(_said(scene)), _service(scene)
    if named is not None and "docs." not in named[0]:
        return named[0]
    return service[0] if service is not None else "https://HOST   (the host that it calls)"


def _without(scene: Scene) -> str:
    service = _service(scene)
    return service[1] if service is not None else "leave that call out, or send what it sends later"


def _fixes(scene: Scene) -> Fixes:
    pid, found = next((thread.pid for thread in talking(scene)), "<PID>"), connections(scene)
    host, _, port = found[0].remote.rpartition(":") if found else ("HOST", "", "PORT")
    return (
        fix("See whether the service answers", f"curl -sSI -m 5 {_address(scene)}")
        if not talking(scene)
        else fix(
            "See whether the service answers",
            f"timeout 5 bash -c '</dev/tcp/{host}/{port}' && echo open",
            f"ss -tnp | grep pid={pid}",
        ),
        *fixes(FIXES, without=_without(scene)),
    )


CAUSE = Cause(
    id="remote-service-wait",
    title="A service outside the job does not answer",
    modes=("hang", "slow", "crash", "check"),
    weigh=first_of(_of_all, _weigh),
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="ss -tnp for that pid: which address does it wait for?",
    refines="rank-stuck",
    accounts_for=("data-worker-stuck", "import-hang", "user-exception", "rank0-long-task"),
    wording=WORDING,
)
