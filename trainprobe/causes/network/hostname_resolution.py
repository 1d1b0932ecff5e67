"""A host name does not resolve, or resolves to an address that is not its host's.

A node's name stands in MASTER_ADDR, in the rendezvous end point or is the node's own, and the
others' resolver does not know it; or torch asks for the name behind an address (reverse lookup) and
then connects to a name that nobody knows.

It is recognised by the resolver's own errors (gai error, "Name or service not known") in lines of
torch, gloo, NCCL or ssh. Addresses of the web are another matter: those are `hub-unreachable`.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fixes, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import first_of
from trainprobe.causes.startup_failures import (
    FOREIGN,
    OFTEN,
    StartupFailure,
    failed_of_something_else,
    final_exceptions,
    lines,
    made_steps,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote, quote_after
from trainprobe.facts import LogEvent, LogJob, Rung
from trainprobe.logtext.retries import tries_again
from trainprobe.signatures.messages import message

WORDING = message("hostname-resolution")
_HOST = re.compile(
    r"network addresses of \((?P<a>[\w.-]{1,128}),|resolve hostname (?P<b>[\w.-]{1,128})|Unable to"
    r" find address for:? (?P<c>[\w.-]{1,128})|connect to \[?(?P<d>[A-Za-z][\w.-]{1,127})\]?:\d"
)
_WEB = re.compile(r"requests/|urllib3/|urllib/request|huggingface_hub/|aiohttp/|httpx/|boto")
FIXES = """
See what every node makes of the name
    getent hosts {name}; getent hosts $(hostname)   (on each node)
Use an address instead
    MASTER_ADDR=$(getent ahostsv4 <NODE> | awk '{print $1; exit}')
    torchrun --rdzv-endpoint <ADDRESS>:29500 …
[admin] Make the name known
    echo "ADDRESS {name}" | sudo tee -a /etc/hosts   (on each node, its own name too)
"""


def _failure(scene: Scene) -> StartupFailure | None:
    last = final_exceptions(scene)[:1]
    if any(_WEB.search(frame.file) for exception in last for frame in exception.frames):
        return None
    return startup_failure(scene, WORDING, "name-not-resolved", unlike=FOREIGN)


def _not_resolved(scene: Scene) -> Weighings:
    found = _failure(scene)
    if found is None:
        return
    for check in scene.checks("host.dns")[:1]:
        host = f"{check.host}: " if check.host else ""
        says = f"{host}{short(check.says)}".rstrip(".")
        yield weighing(10, "environment-and-limits", says, check)
    by_line = not found.last_words and not failed_of_something_else(scene)
    sign = 26 if by_line and found.captured and not _may_pass(scene, found) else 13
    yield from weigh_startup_failure(scene, found, sign=sign, at_start=True)


def _may_pass(scene: Scene, found: StartupFailure) -> bool:
    """Whether it was tried in vain once or twice and nobody says that anything waits or has ended:
    so it is where a peer's name is known a little later.
    """
    once = isinstance(found.fact, LogEvent) and found.fact.count < OFTEN
    untold = scene.first_failure is None and not scene.group.waits
    return once and untold and scene.one(LogJob) is not None and tries_again(found.text)


def _looked_up(scene: Scene) -> Weighings:
    """A name that was looked up in vain, perhaps without harm."""
    own, reverse = lines(scene, "own-name-not-resolved"), lines(scene, "reverse-name-missing")
    job = scene.one(LogJob)
    # of a peer that has connected: where the log goes on, so did the job
    went_on = job is not None and bool(reverse) and job.last_place - (reverse[-1].place or 0) > 1
    passing = not own and (went_on or any(len(rung.hosts) > 1 for rung in scene.of(Rung)))
    harmless = passing or failed_of_something_else(scene) or made_steps(scene) > 1
    for event in sorted((*own, *reverse), key=lambda event: event.place or 0)[:1]:
        points = 3 if harmless or scene.origin is not None else 13
        yield quote(points, "A name was looked up in vain", event)


def _name(scene: Scene) -> str:
    found = _failure(scene)
    match = _HOST.search(found.text) if found is not None else None
    return next((name for name in match.groups() if name), "") if match is not None else ""


def _summary(scene: Scene) -> str:
    found, name = _failure(scene), _name(scene)
    if found is None:
        return "The name of a host of the job could not be looked up."
    if name:
        return f"The host name {name} does not resolve"
    return f"A host name of the job does not resolve{quote_after(found)}"


CAUSE = Cause(
    id="hostname-resolution",
    title="A host name does not resolve",
    weigh=first_of(_not_resolved, _looked_up),
    summary=_summary,
    fixes=lambda scene: fixes(FIXES, name=_name(scene) or "$MASTER_ADDR"),
    ranks=nobody,
    would_settle="getent hosts NAME on every node, for MASTER_ADDR and for each node's own name",
    refines="rendezvous-incomplete",
    accounts_for=("user-exception", "native-crash"),
    wording=WORDING,
    ready=ReadySigns(
        says=("does not find the nodes by their names", "do not find the nodes by their names"),
        checks=("host.dns", "plan.master"),
        values=("host.own_name_loops", "net.resolves"),
        hows=("wrong-address",),
    ),
)
