"""What torch's worker server tells of a rank: which waits are active, and its flight recorder.
Nothing is asked that needs the GIL.

`torch.distributed.elastic.control_plane`: plain HTTP on a unix socket named by
TORCH_WORKER_SERVER_SOCKET; GET /handler/ lists the handlers, POST /handler/<name> calls one. Where
it listens on TCP (`torch.distributed.debug`) nothing tells its port from a store's or gloo's, and a
question to those could disturb them: so it is not asked there.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from trainprobe.collect import procfs
from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.dump_files import read_dump_content
from trainprobe.collect.listening import listeners
from trainprobe.collect.look_results import LookResult, refused, side_by_side
from trainprobe.collect.members import Member
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

THREAD = "pt_workerserver"
VARIABLE = "TORCH_WORKER_SERVER_SOCKET"
ANSWER_CAP_BYTES = 64 * 2**20
COUNTERS_CAP = 500


@dataclass(frozen=True)
class WorkerServer(Fact):
    """The server of one rank. `waiting` names the wait counters that are active now, such as
    `pytorch.wait_counter.c10d.init_process_group`.
    """

    pid: int = 0
    handlers: Tuple[str, ...] = ()
    waiting: Tuple[str, ...] = ()


def look(job: JobView, deadline_s: float) -> List[LookResult]:
    """Return one result per rank that has a server, and its recorder as a `flight_recorder`."""
    found = find_servers(job.members)
    answers = side_by_side(
        [partial(ask_server, path, member, deadline_s) for member, path in found], deadline_s
    )
    results = []
    for (member, path), answer in zip(found, answers):
        data = dict(answer.data)
        dump = data.pop("dump", None)
        results.append(replace(answer, data=data, subject=member.subject, source=path))
        if dump is not None:
            results.append(
                replace(
                    answer,
                    data={"rank": member.rank, "path": path, **dump},
                    outcome="ok",
                    reason="",
                    subject=member.subject,
                    kind="flight_recorder",
                    source="worker server",
                )
            )
    return results


def find_servers(members: Sequence[Member], proc: str = "/proc") -> List[Tuple[Member, str]]:
    """The ranks with the server's thread, and the unix socket that each listens on."""
    serving = [
        member
        for member in members
        if member.role == "rank" and THREAD in procfs.thread_files(member.pid, "comm", proc)
    ]
    if not serving:
        return []
    found: Dict[int, Tuple[Member, str]] = {}
    for listener in listeners(serving, proc):
        if listener.kind == "unix" and listener.address.startswith("/") and listener.ours:
            named = _named(listener.member.pid, proc)
            if listener.address == named or not named:
                found.setdefault(listener.member.pid, (listener.member, listener.address))
    return list(found.values())


def ask_server(path: str, member: Member, deadline_s: float) -> LookResult:
    """`dump` of its data is what the recorder holds."""
    ends = time.monotonic() + deadline_s
    base: Dict[str, Any] = {"rank": member.rank, "pid": member.pid, "address": path}
    try:
        handlers = json.loads(call(path, "GET", "/handler/", ends))
        if not isinstance(handlers, list):
            return refused("crashed", f"what answers at {path} is no worker server", **base)
        base["handlers"] = [str(name)[:80] for name in handlers][:100]
        if "wait_counter_values" in handlers:
            base["wait_counters"] = counters(
                json.loads(call(path, "POST", "/handler/wait_counter_values", ends))
            )
        if "fr_trace_json" in handlers:
            content = call(path, "POST", "/handler/fr_trace_json", ends)
            base["bytes"] = len(content)
            read = read_dump_content(content, ends)
            if read.broken:
                return refused(
                    "partial",
                    f"the recorder of the worker server at {path} cannot be used: {read.broken}",
                    **base,
                )
            base["dump"] = {"bytes": len(content), **read.dump}
    except socket.timeout:
        return refused(
            "timed_out",
            f"the worker server at {path} gave no answer within {deadline_s:g} s",
            **base,
        )
    except (OSError, http.client.HTTPException) as error:
        return refused(
            "unavailable", f"the worker server at {path} gave no answer: {error}", **base
        )
    except (ValueError, RecursionError) as error:
        return refused(
            "partial" if "handlers" in base else "crashed",
            f"an answer of the worker server at {path} cannot be used: {error}",
            **base,
        )
    return LookResult(base)


def counters(answer: Any) -> Dict[str, Dict[str, int]]:
    """{name: {active_count, max_time_us, total_calls, total_time_us}}, active waits first."""
    rows: Mapping[str, Any] = answer if isinstance(answer, dict) else {}
    whole = {
        str(name)[:200]: {str(key): value for key, value in row.items() if isinstance(value, int)}
        for name, row in rows.items()
        if isinstance(row, dict)
    }
    first = sorted(whole, key=lambda name: (-whole[name].get("active_count", 0), name))[
        :COUNTERS_CAP
    ]
    return {name: whole[name] for name in first}


def call(path: str, method: str, target: str, ends: float) -> bytes:
    """One HTTP exchange over a unix socket. Raises OSError, also socket.timeout when `ends` has
    passed, HTTPException, or ValueError when refused.
    """
    connection = _Connection(path, ends)
    try:
        connection.request(method, target, headers={"Connection": "close"})
        answer = connection.getresponse()
        parts: List[bytes] = []
        size = 0
        while size <= ANSWER_CAP_BYTES:
            connection.refresh()
            part = answer.read1(1 << 20)
            if not part:
                break
            parts.append(part)
            size += len(part)
    finally:
        connection.close()
    if answer.status != 200 or size > ANSWER_CAP_BYTES:
        raise ValueError(f"{target} gave status {answer.status} and {size} bytes")
    return b"".join(parts)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, ends: float) -> None:
        super().__init__("localhost")
        self._path, self._ends = path, ends

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.refresh()
        self.sock.connect(self._path)

    def refresh(self) -> None:
        """Allow each step no more than what is left of the whole."""
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise socket.timeout("no time was left")
        if self.sock is not None:
            self.sock.settimeout(left_s)


def _named(pid: int, proc: str) -> str:
    for entry in (procfs.read_or_none(f"{proc}/{pid}/environ") or "").split("\0"):
        name, _, value = entry.partition("=")
        if name == VARIABLE:
            return value
    return ""


def parse_worker_server(record: Evidence) -> List[Fact]:
    data = record.data
    counters = fields.part(data, "wait_counters")
    waiting = tuple(
        str(name)
        for name in counters
        if (fields.whole(fields.part(counters, name), "active_count") or 0) > 0
    )
    pid = fields.whole(data, "pid") or record.subject.pid or 0
    rank = record.subject.rank
    return [fields.fact(WorkerServer, record, rank=rank, pid=pid, waiting=waiting)]


COLLECTOR = Collector(
    "worker_server", look, deadline_s=3.0, parse=parse_worker_server, facts=(WorkerServer,)
)
