"""What NCCL's RAS threads say of the job's communicators: which ranks lag, which do not answer.

Protocol and formats: NCCL user guide, "RAS" (text since 2.24, JSON since 2.28.7). Only STATUS is
asked: VERBOSE STATUS crashed jobs with 2.27.3 (NVIDIA/nccl issue 1762), and CONTROL changes the
job.
"""

from __future__ import annotations

import json
import re
import socket
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.listening import Listener, listeners
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

PORT = 28028
CONNECT_S = 1.0
ANSWER_CAP_BYTES = 32 * 2**20
RANKS_CAP = 4096
# NCCL 2.28.9 writes `"missing_ranks": [ {…} {…} ]` without a comma between the objects.
_NO_COMMA = re.compile(r"\}(\s*)\{")
_VERSION = re.compile(r"^NCCL version (\S+)", re.MULTILINE)
_GROUP = re.compile(
    r"^ +(\d+) +(\d+) +([\d-]+) +([\d-]+) +(\d+) +(\d+) +([A-Z/]+) +([A-Z/]+) *$", re.MULTILINE
)
_BLOCK = re.compile(r"^(?:#(\d+-\d+) \(([0-9a-f]+)\) )?([A-Z]+)$")
_COUNTS = re.compile(r"Communicator ranks have different (.+)$")
_MANY = re.compile(
    r"(\d+) ranks? have (?:launched up to operation (\d+)|not launched any operations|status (\w+))"
)
_ONE = re.compile(
    r"Rank (\d+)(?: has (?:launched up to operation (\d+)|not launched any operations|status"
    r" (\w+)))? -- GPU (\S+) managed by process (\d+) on node (\S+)"
)
_MISSING = re.compile(r"The missing ranks?: ([\d, ]+)")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPUs? (\S+)")
DIGITS_CAP = 19
KINDS = ("INCOMPLETE", "DEAD", "TIMEOUT", "MISMATCH", "ERROR")
STATUS = "init_state async_error finalize_called abort_flag unresponsive considered_dead"


@dataclass(frozen=True)
class RasRank:
    """One rank of a communicator. `number` is the communicator's own; pid and host join it to a
    rank of the world.

    `counts` are launched (not completed) collectives by operation; RAS counts no send and no
    receive. `status` as text, where told.
    """

    number: int = 0
    host: str = ""
    pid: Optional[int] = None
    counts: Dict[str, int] = field(default_factory=dict)
    status: str = ""
    unresponsive: bool = False
    dead: bool = False


@dataclass(frozen=True)
class RasCommunicator(Fact):
    """One NCCL communicator. `lagging` have launched less than others of some operation, `missing`
    gave no data (numbers of the communicator).

    `ranks` lists all from JSON, and only those that differ from text. Equal counts say nothing of
    what goes on inside a collective.
    """

    hash: str = ""
    size: Optional[int] = None
    ranks: Tuple[RasRank, ...] = ()
    lagging: Tuple[int, ...] = ()
    missing: Tuple[RasRank, ...] = ()
    errors: Tuple[str, ...] = ()
    nccl_version: str = ""


def port_of(environment: Mapping[str, str]) -> int:
    """The port in NCCL_RAS_ADDR (`host:port`), else NCCL's own."""
    digits = environment.get("NCCL_RAS_ADDR", "").rpartition(":")[2]
    return int(digits) if digits.isdecimal() else PORT


def look(job: JobView, deadline_s: float) -> List[LookResult]:
    """Ask RAS if a rank listens at its port, or the environment says that one should."""
    found = [
        member
        for member in listeners(job.members)
        if member.kind == "tcp" and member.port == port_of(job.variables)
    ]
    configured = any(name.startswith(("NCCL_RAS_", "NCCL_COMM_ID")) for name in job.variables)
    return [read_ras(found, deadline_s)] if found or configured else []


def read_ras(found: Sequence[Listener], deadline_s: float) -> LookResult:
    reachable = [listener for listener in found if listener.ours]
    if not reachable:
        why = (
            "it listens in another network namespace; run trainprobe inside the container"
            if found
            else "no rank of this host listens where NCCL's RAS should"
        )
        return refused("unavailable", f"RAS was not asked: {why}")
    ends = time.monotonic() + deadline_s
    listener = reachable[0]
    base: Dict[str, Any] = {"address": listener.address, "answered_by": listener.member.pid}
    try:
        answer, form = ask(listener.host, listener.port, ends)
    except OSError as error:
        outcome = "timed_out" if isinstance(error, socket.timeout) else "unavailable"
        return refused(outcome, f"RAS at {listener.address} gave no answer: {error}", **base)  # type: ignore[arg-type]
    data = parse_json(answer) if form == "json" else parse_text(answer)
    if data is None:
        return refused(
            "crashed", f"what answers at {listener.address} is not RAS: {answer[:80]!r}", **base
        )
    return LookResult({**base, "format": form, **data})


def ask(host: str, port: int, ends: float) -> Tuple[str, str]:
    """Return the answer to STATUS and its form. Raises OSError, or socket.timeout after `ends`."""
    with socket.create_connection((host, port), timeout=min(CONNECT_S, _left(ends))) as connection:
        reader = connection.makefile("rb")
        left_s = max(1, int(_left(ends) - 0.5))
        connection.sendall(f"CLIENT PROTOCOL 2\nTIMEOUT {left_s}\nSET FORMAT json\n".encode())
        replies = []
        for _ in range(3):
            connection.settimeout(_left(ends))
            replies.append(reader.readline(4096).decode("utf-8", "replace").strip())
        form = "json" if replies[2] == "OK" else "text"
        connection.sendall(b"STATUS\n")
        parts: List[bytes] = []
        size = 0
        while size < ANSWER_CAP_BYTES:
            connection.settimeout(_left(ends))
            part = reader.read1(65536)
            if not part:
                break
            parts.append(part)
            size += len(part)
    return b"".join(parts).decode("utf-8", "replace"), form


def parse_json(text: str) -> Optional[Dict[str, Any]]:
    """{nccl_version, communicators: [{hash, size, ranks, missing}], timeouts}; else None."""
    try:
        document = json.loads(_NO_COMMA.sub(r"},\1{", text))
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("communicators"), list):
        return None
    communicators = [
        {
            "hash": str(row.get("hash", ""))[:60],
            "size": row.get("size"),
            "ranks": _ranks(row.get("ranks")),
            "missing": _ranks(row.get("missing_ranks")),
        }
        for row in document["communicators"][:RANKS_CAP]
        if isinstance(row, dict)
    ]
    ras = document.get("ras")
    timeouts = ras.get("timeouts_count") if isinstance(ras, dict) else None
    return {
        "nccl_version": str(document.get("nccl_version", ""))[:40],
        "communicators": communicators,
        "timeouts": timeouts,
        "errors": [],
    }


def _ranks(rows: Any) -> List[Dict[str, Any]]:
    listed = rows if isinstance(rows, list) else ()
    return [_rank(row) for row in listed if isinstance(row, dict)][:RANKS_CAP]


def _rank(row: Mapping[str, Any]) -> Dict[str, Any]:
    """One rank; its number is the communicator's, not the world's: host and pid join the two."""
    status, counts = (
        value if isinstance(value, dict) else {}
        for value in (row.get("status"), row.get("collective_counts"))
    )
    return {
        **{name: row.get(name) for name in ("rank", "host", "pid", "cuda_dev", "nvml_dev")},
        "counts": {str(name): value for name, value in counts.items() if isinstance(value, int)},
        **{name: status[name] for name in STATUS.split() if name in status},
    }


def parse_text(text: str) -> Optional[Dict[str, Any]]:
    """The same from the text: groups of equal communicators, then a block per communicator in which
    something differs.

    A rank named on a line of its own has the count of the line before, unless its line tells one.
    """
    if "Communicators" not in text and "NCCL version" not in text:
        return None
    names = ("group", "count", "nodes", "ranks_per_node", "size", "ranks", "status", "errors")
    groups = [dict(zip(names, match.groups())) for match in _GROUP.finditer(text)]
    communicators: Dict[str, Dict[str, Any]] = {}
    errors: List[Dict[str, Any]] = []
    now: Dict[str, Any] = {}
    what, count = "", None
    for line in (line.strip() for line in text.splitlines()):
        block, differs = _BLOCK.match(line), _COUNTS.search(line)
        many, single = _MANY.match(line), _ONE.match(line)
        missing, process = _MISSING.match(line), _PROCESS.match(line)
        if block is not None and (block.group(1) or block.group(3) in KINDS):
            _, digest, kind = block.groups()
            if digest:
                blank: Dict[str, Any] = {"hash": digest, "name": block.group(1)}
                blank.update(ranks=[], missing=[], errors=[])
                now = communicators.setdefault(digest, blank)
                now["errors"].append(kind)
            else:
                now = {"kind": kind, "says": [], "processes": []}
                errors.append(now)
        elif differs is not None:
            what = differs.group(1)
        elif many is not None:
            count = many.group(2) or many.group(3) or "0"
            camp = {"ranks": int(many.group(1)), "what": what, "value": count}
            now.setdefault("camps", []).append(camp)
        elif single is not None:
            row = {
                "rank": int(single.group(1)),
                "host": single.group(6),
                "pid": int(single.group(5)),
                "what": what,
                "value": single.group(2) or single.group(3) or count,
            }
            now.setdefault("ranks", []).append(row)
        elif missing is not None:
            numbers = re.findall(r"\d+", line)
            now.setdefault("missing", []).extend({"rank": int(number)} for number in numbers)
        elif process is not None:
            pid, host, _gpus = process.groups()
            now.setdefault("processes", []).append({"pid": int(pid), "host": host})
    version = _VERSION.search(text)
    return {
        "nccl_version": version.group(1) if version else "",
        "groups": groups,
        "communicators": list(communicators.values()),
        "errors": errors,
        "timeouts": None,
    }


def _left(ends: float) -> float:
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise socket.timeout("no time was left")
    return left_s


def parse_ras(record: Evidence) -> List[Fact]:
    version = fields.text(record.data, "nccl_version")

    def communicator(row: Mapping[str, Any]) -> Fact:
        ranks = tuple(fields.each(fields.items(row, "ranks"), _ras_rank))
        missing = tuple(fields.each(fields.items(row, "missing"), _ras_rank))
        return fields.fact(
            RasCommunicator,
            record,
            row,
            ranks=ranks,
            lagging=_lagging(ranks, fields.items(row, "camps")),
            missing=missing,
            errors=fields.texts(row, "errors") or (("INCOMPLETE",) if missing else ()),
            nccl_version=version,
        )

    return fields.each(fields.items(record.data, "communicators"), communicator)


def _ras_rank(row: Mapping[str, Any]) -> RasRank:
    number = fields.whole(row, "rank")
    if number is None:
        raise fields.UnreadableError("a rank without a number")
    counts = {
        str(name): count
        for name, count in fields.part(row, "counts").items()
        if isinstance(count, int)
    }
    value, status = fields.text(row, "value"), ""
    count = _count(value)
    if count is None:
        status = value
    else:
        counts[_operation(fields.text(row, "what"))] = count
    dead = fields.flag(row, "considered_dead") or False
    return fields.build(RasRank, row, number=number, counts=counts, status=status, dead=dead)


def _count(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < DIGITS_CAP else None


def _operation(what: str) -> str:
    """`AllReduce operation counts` is AllReduce; NCCL before 2.26 counts all together."""
    first = what.partition(" ")[0]
    return first if first and first != "collective" else "all"


def _lagging(ranks: Tuple[RasRank, ...], camps: List[Any]) -> Tuple[int, ...]:
    """The ranks below the highest count of an operation. Text only counts the others (camps)."""
    highest: Dict[str, int] = {}
    for name, count in [(name, count) for rank in ranks for name, count in rank.counts.items()]:
        highest[name] = max(highest.get(name, 0), count)
    for camp in camps:
        launched = _count(fields.text(camp, "value")) if isinstance(camp, Mapping) else None
        if launched is not None:
            name = _operation(fields.text(camp, "what"))
            highest[name] = max(highest.get(name, 0), launched)
    return tuple(
        rank.number
        for rank in ranks
        if any(count < highest[name] for name, count in rank.counts.items())
    )


COLLECTOR = Collector(
    "ras",
    look,
    deadline_s=3.0,
    source="NCCL RAS",
    wanted=lambda job: job.variables.get("NCCL_RAS_ENABLE") != "0",
    parse=parse_ras,
    facts=(RasCommunicator,),
)
