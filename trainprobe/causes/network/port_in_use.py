"""The port of the rendezvous is taken.

Two jobs on one host with the default port 29500, or a run that was not cleaned up: rank 0 or the
launcher cannot listen, and the others wait for a store that never opens.

It is recognised by "Address already in use" (errno 98), by the host check of MASTER_PORT, and in a
live job whose ranks are all there by Python processes of another job that are connected to its
store: both write the addresses of their ranks under the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, failed_at_start, failed_check
from trainprobe.causes.startup_failures import captured, lines, startup_failure
from trainprobe.facts import Connection, JobRank, ProcessState
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

_PYTHON = re.compile(r"python|\btorchrun\b|\baccelerate\b")
WORDING = message("port-in-use")
CHECK = "plan.port"
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|\]?:(\d{4,5})\b|', (\d{2,5})\)")
FIXES = """
See who has it
    ss -ltnp 'sport = :{port}'
Take another port
    torchrun --master-port 0 …   or: export MASTER_PORT=$(shuf -i 20000-60000 -n 1)
[disruptive] End a left-over run
    kill {pids}   ({which}, if it is yours)
    verify: ss -ltn 'sport = :{port}'
"""


def _port(scene: Scene) -> str:
    found, check = startup_failure(scene, WORDING, "port-in-use"), scene.failed_check(CHECK)
    if strangers := _strangers(scene):
        return strangers[0].local.rpartition(":")[2]
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


def _strangers(scene: Scene) -> tuple[Connection, ...]:
    """Connections to the job's store from Python processes that are none of the job's, one for each
    process; () where the job is not whole, since these may then be its ranks.
    """
    job = scene.live
    if job is None or job.absent or job.elsewhere or scene.group.mode != "hang":
        return ()
    known = {process.pid for process in scene.facts.of(ProcessState, cell=scene.cell)}
    known |= {job.launcher_pid or 0, *(other.pid for other in job.others)}
    ours = {rank.pid for rank in scene.of(JobRank)}
    found = {
        one.peer_pid: one
        for one in scene.of(Connection)
        if one.kind == "tcp"
        and one.state == "ESTAB"
        and one.local.rpartition(":")[2] in job.store_ports
        and one.peer_pid is not None
        and one.peer_pid not in known | ours
        and _PYTHON.search(one.peer)
    }
    return tuple(found[pid] for pid in sorted(found))


def _of_strangers(scene: Scene) -> Weighings:
    if strangers := _strangers(scene):
        yield weighing(13, "network", _strangers_say(strangers), *strangers)
        waiting = scene.waiting(scene.world)
        if len(waiting) == len(scene.world):
            says = "All ranks wait for each other, as they do where addresses of others stand there"
            yield weighing(6, "other-stacks", says, *waiting)


def _strangers_say(strangers: Sequence[Connection]) -> str:
    pids = and_list([str(one.peer_pid) for one in strangers[:4]])
    port = strangers[0].local.rpartition(":")[2]
    return (
        f"{'Pid' if len(strangers) == 1 else 'Pids'} {pids} of another job"
        f" ({short(strangers[0].peer, 60)}) {'is' if len(strangers) == 1 else 'are'} connected to"
        f" this job's store at port {port}"
    )


def _summary(scene: Scene) -> str:
    if strangers := _strangers(scene):
        return f"{_strangers_say(strangers)}: two jobs meet under one port and mix up their ranks"
    port, ended = _port(scene), _ended_of_it(scene)
    which = f"Port {port}" if port else "The port at which the ranks were to meet"
    of_it = f", so {ranks_say(ended, capital=False)} has ended" if ended else ""
    return f"{which} is already used by another process{of_it}"


def _fixes(scene: Scene) -> Fixes:
    strangers = _strangers(scene)
    pids = " ".join(str(one.peer_pid) for one in strangers) or "<PID>"
    which = "the other job" if strangers else "the pid that ss showed"
    return fixes(FIXES, port=_port(scene) or "29500", pids=pids, which=which)


CAUSE = Cause(
    id="port-in-use",
    title="The rendezvous port is taken",
    weigh=all_of(
        failed_at_start(WORDING, "port-in-use", sign=26),
        failed_check(CHECK, beside=WORDING),
        _of_strangers,
    ),
    summary=_summary,
    fixes=_fixes,
    ranks=_ended_of_it,
    would_settle="ss -ltnp at the rendezvous port",
    refines="user-exception",
    accounts_for=("rendezvous-incomplete",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has the port in use already", "have the port in use already"), checks=("plan.port",)
    ),
)
