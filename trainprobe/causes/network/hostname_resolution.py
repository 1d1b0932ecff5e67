"""A host name does not resolve, or resolves to an address that is not its host's.

A node's name stands in MASTER_ADDR, in the rendezvous end point or is the node's own, and the others' resolver does not know it; or torch asks for
the name behind an address (reverse lookup) and then connects to a name that nobody knows.

It is recognised by the resolver's own errors (gai error, "Name or service not known") in lines of torch, gloo, NCCL or ssh. Addresses of the web are
another matter: those are `hub-unreachable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import FOREIGN, Told, failed_of_something_else, last_words, lines, made_steps, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, Rung
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# c10d's socket.cpp and (torch 1.x) Utils.cpp, gloo's device.cc, glibc, macOS, Windows, OpenSSH.
WORDING = (
    r"gai error|gaierror|Name or service not known|Temporary failure in name resolution|host not found: |nodename nor servname|getaddrinfo failed"
    r"|No address associated with hostname|No such host is known|[Cc]ould not resolve hostname|rp != nullptr[^\n]{0,40}Unable to find address"
    r"|Unable to find address for [^\s;]{1,128}; bind|device\.cc:\d{1,5}\] rv == 0\. -\d|errno: 22 - Invalid argument"
)
_HOST = re.compile(
    r"network addresses of \((?P<a>[\w.-]{1,128}),|resolve hostname (?P<b>[\w.-]{1,128})|Unable to find address for:? (?P<c>[\w.-]{1,128})|connect to \[?(?P<d>[A-Za-z][\w.-]{1,127})\]?:\d"
)
_WEB = re.compile(r"requests/|urllib3/|urllib/request|huggingface_hub/|aiohttp/|httpx/|boto")
CHECK = "host.dns"


def _heard(scene: Scene) -> Told | None:
    if any(_WEB.search(frame.file) for exception in last_words(scene)[:1] for frame in exception.frames):
        return None
    return told(scene, WORDING, "name-not-resolved", unlike=FOREIGN)


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = _heard(scene)
    if heard is not None:
        for check in scene.checks(CHECK)[:1]:
            yield weighing(10, "environment-and-limits", f"{f'{check.host}: ' if check.host else ''}{short(check.says)}".rstrip("."), check)
        by_line = not heard.last_words and not failed_of_something_else(scene)
        yield from weigh_told(scene, heard, sign=26 if by_line and heard.captured else 13, at_start=True)
        return
    own = lines(scene, "own-name-not-resolved", "reverse-name-missing")
    if own:
        passing = not lines(scene, "own-name-not-resolved") and any(len(rung.hosts) > 1 for rung in facts.of(Rung, cell=scene.cell))
        alone = not passing and not failed_of_something_else(scene) and scene.origin is None and made_steps(scene) < 2
        yield weighing(13 if alone else 3, "suspects-log", f"A name was looked up in vain: {short(own[0].line)}", own[0])


def _name(scene: Scene) -> str:
    heard = _heard(scene)
    match = _HOST.search(heard.text) if heard is not None else None
    return next((name for name in match.groups() if name), "") if match is not None else ""


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, name = _heard(scene), _name(scene)
    if heard is None:
        return "The name of a host of the job could not be looked up."
    return sentence(f"The host name {name} does not resolve" if name else f"A host name of the job does not resolve: {short(heard.text, 140)}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    name = _name(scene) or "$MASTER_ADDR"
    return (
        fix(scene, "See what every node makes of the name", f"getent hosts {name}; getent hosts $(hostname)   (on each node)"),
        fix(scene, "Use an address instead", "MASTER_ADDR=$(getent ahostsv4 <NODE> | awk '{print $1; exit}')", "torchrun --rdzv-endpoint <ADDRESS>:29500 …"),
        fix(
            scene, "Make the name known", f'echo "ADDRESS {name}" | sudo tee -a /etc/hosts   (on each node, its own name too)', risk="needs-admin", who="admin"
        ),
    )


CAUSE = readied(
    Cause(
        id="hostname-resolution",
        title="A host name does not resolve",
        means="A host name of the job does not resolve on a node, or resolves to the wrong address.",
        telling="Errors of getaddrinfo in lines of torch, gloo, NCCL or ssh, or a name that belongs to another machine.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="getent hosts NAME on every node, for MASTER_ADDR and for each node's own name",
        refines="rendezvous-incomplete",
        accounts_for=("user-exception", "native-crash"),
        wording=WORDING,
    ),
    Signs(
        says=("does not find the nodes by their names", "do not find the nodes by their names"),
        checks=("host.dns", "plan.master"),
        values=("host.own_name_loops", "net.resolves"),
        hows=("wrong-address",),
    ),
)
