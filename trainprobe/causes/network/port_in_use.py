"""The port of the rendezvous is taken.

Two jobs on one host with the default port 29500, or a run that was not cleaned up: rank 0 or the
launcher cannot listen, and the others wait for a store that never opens.

It is recognised by "Address already in use" (errno 98), and by the host check of MASTER_PORT.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import fixes, ranks_say
from trainprobe.causes.scene import Scene
from trainprobe.causes.signs import all_of, failed_at_start, failed_check
from trainprobe.causes.startup_failures import captured, lines, startup_failure
from trainprobe.signatures.messages import message

WORDING = message("port-in-use")
CHECK = "plan.port"
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|\]?:(\d{4,5})\b|', (\d{2,5})\)")
FIXES = """
See who has it
    ss -ltnp 'sport = :{port}'
Take another port
    torchrun --master-port 0 …   or: export MASTER_PORT=$(shuf -i 20000-60000 -n 1)
[disruptive] End a left-over run
    kill <PID>   (the pid that ss showed, if it is yours)
    verify: ss -ltn 'sport = :{port}'
"""


def _port(scene: Scene) -> str:
    found, check = startup_failure(scene, WORDING, "port-in-use"), scene.failed_check(CHECK)
    match = PORT.search(found.text) if found is not None else None
    if match:
        return next(group for group in match.groups() if group)
    named = captured(lines(scene, "port-in-use"), "port")
    return named[0] if named else check.value if check is not None else ""


def _ended_of_it(scene: Scene) -> tuple[int, ...]:
    """The rank that ended of it while others wait for it; nobody where all failed."""
    found = startup_failure(scene, WORDING, "port-in-use") if scene.group.mode == "hang" else None
    who = found.fact.rank if found is not None and found.last_words else None
    return (who,) if who is not None and who in scene.ranks else ()


def _summary(scene: Scene) -> str:
    port, ended = _port(scene), _ended_of_it(scene)
    which = f"Port {port}" if port else "The port at which the ranks were to meet"
    of_it = f", so {ranks_say(ended, capital=False)} has ended" if ended else ""
    return f"{which} is already used by another process{of_it}"


CAUSE = Cause(
    id="port-in-use",
    title="The rendezvous port is taken",
    weigh=all_of(
        failed_at_start(WORDING, "port-in-use", sign=26), failed_check(CHECK, beside=WORDING)
    ),
    summary=_summary,
    fixes=lambda scene: fixes(FIXES, port=_port(scene) or "29500"),
    ranks=_ended_of_it,
    would_settle="ss -ltnp at the rendezvous port",
    refines="user-exception",
    accounts_for=("rendezvous-incomplete",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has the port in use already", "have the port in use already"), checks=("plan.port",)
    ),
)
