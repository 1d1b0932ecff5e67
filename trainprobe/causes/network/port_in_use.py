"""The port of the rendezvous is taken.

Two jobs on one host with the default port 29500, or a run that was not cleaned up: rank 0 or the launcher cannot listen, and the others wait
for a store that never opens.

It is recognised by "Address already in use" (errno 98), and by the host check of MASTER_PORT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene
from trainprobe.causes.spoken import checked
from trainprobe.causes.told import Told, captured, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/csrc/distributed/c10d/socket.cpp and the kernel's errno 98.
WORDING = r"EADDRINUSE|[Aa]ddress already in use|\b[Ee]rrno:? (?:98|48)\b|WinError 10048|Only one usage of each socket address|another process is utilizing it|port: \d{1,5} already in use"
CHECK = "plan.port"
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|\]?:(\d{4,5})\b|', (\d{2,5})\)")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = _heard(scene)
    yield from weigh_told(scene, heard, sign=26)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _heard(scene: Scene) -> Told | None:
    return told(scene, WORDING, "port-in-use")


def _port(scene: Scene) -> str:
    heard = _heard(scene)
    match = PORT.search(heard.text) if heard is not None else None
    check = next(iter(scene.checks(CHECK)), None)
    named = captured(lines(scene, "port-in-use"), "port")
    return next(group for group in match.groups() if group) if match else named[0] if named else check.value if check is not None else ""


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    port = _port(scene)
    return sentence(
        f"Port {port} is already used by another process" if port else "The port at which the ranks were to meet is already used by another process"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    port = _port(scene) or "29500"
    return (
        fix(scene, "See who has it", f"ss -ltnp 'sport = :{port}'"),
        fix(scene, "Take another port", "torchrun --master-port 0 …   or: export MASTER_PORT=$(shuf -i 20000-60000 -n 1)"),
        fix(scene, "End a left-over run", "kill <PID>   (the pid that ss showed, if it is yours)", risk="disruptive", verify=f"ss -ltn 'sport = :{port}'"),
    )


CAUSE = readied(
    Cause(
        id="port-in-use",
        title="The rendezvous port is taken",
        means="The port at which the ranks were to meet is used by another process.",
        telling="Address already in use, EADDRINUSE, errno 98.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="ss -ltnp at the rendezvous port",
        refines="user-exception",
        accounts_for=("rendezvous-incomplete",),
        wording=WORDING,
    ),
    Signs(says=("has the port in use already", "have the port in use already"), checks=("plan.port",)),
)
