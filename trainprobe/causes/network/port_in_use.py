"""The port of the rendezvous is taken.

Two jobs on one host with the default port 29500, or a run that was not cleaned up: rank 0 or the
launcher cannot listen, and the others wait for a store that never opens.

It is recognised by "Address already in use" (errno 98), and by the host check of MASTER_PORT.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fixes
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.startup_failures import (
    StartupFailure,
    captured,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import checked
from trainprobe.signatures.messages import message

WORDING = message("port-in-use")
CHECK = "plan.port"
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|\]?:(\d{4,5})\b|', (\d{2,5})\)")


def _weigh(scene: Scene) -> Weighings:
    heard = _heard(scene)
    yield from weigh_startup_failure(scene, heard, sign=26)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _heard(scene: Scene) -> StartupFailure | None:
    return startup_failure(scene, WORDING, "port-in-use")


def _port(scene: Scene) -> str:
    heard = _heard(scene)
    match = PORT.search(heard.text) if heard is not None else None
    check = scene.failed_check(CHECK)
    named = captured(lines(scene, "port-in-use"), "port")
    if match:
        return next(group for group in match.groups() if group)
    if named:
        return named[0]
    if check is not None:
        return check.value
    return ""


def _summary(scene: Scene) -> str:
    port = _port(scene)
    if port:
        return f"Port {port} is already used by another process"
    return "The port at which the ranks were to meet is already used by another process"


FIXES = """
See who has it
    ss -ltnp 'sport = :{port}'
Take another port
    torchrun --master-port 0 …   or: export MASTER_PORT=$(shuf -i 20000-60000 -n 1)
[disruptive] End a left-over run
    kill <PID>   (the pid that ss showed, if it is yours)
    verify: ss -ltn 'sport = :{port}'
"""


def _fixes(scene: Scene) -> Fixes:
    port = _port(scene) or "29500"
    return fixes(FIXES, port=port)


CAUSE = Cause(
    id="port-in-use",
    title="The rendezvous port is taken",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ss -ltnp at the rendezvous port",
    refines="user-exception",
    accounts_for=("rendezvous-incomplete",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has the port in use already", "have the port in use already"), checks=("plan.port",)
    ),
)
