"""What a dump of torch's flight recorder holds: its unpickled content in, plain data for the case
out. It needs no torch.

Two forms exist (torch/csrc/distributed/c10d/FlightRecorder*.hpp): a pickle with Python frames, and
JSON without. Versions 2.0 to 2.10 were seen; a field that is missing or of another type is left
empty, since the minor number grows with each new field. A dump names neither its rank nor its host,
so the rank comes from the name of the file.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter, defaultdict
from operator import itemgetter
from typing import Any, Dict, Hashable, Iterable, List, Mapping, Optional, Sequence, Tuple

FILE_CAP_BYTES = 64 * 2**20
ENTRIES_CAP = 200_000
LAST_PER_GROUP = 400
PENDING_CAP = 2000
FRAMES_CAP = 40
FRAME_TABLE_CAP = 20_000
GROUPS_CAP = 4096
RANKS_TEXT_CAP = 2**20
TEXT_CAP = 300
NUMBER_CAP = 2**63
# Words that stand before the rank in names that people and tools give to dumps and to stack dumps.
_RANK_WORDS = re.compile(
    r"(?:^|[^a-z])(?<!local[^a-z])(?:global[_-]?|world[_-]?)?(?:rank|rk|r)[_\-.="
    r" ]{0,2}(\d{1,7})(?!\d)",
    re.IGNORECASE,
)
_LAST_NUMBER = re.compile(r"(?<![\d.])(\d{1,7})\D*$")
_ENDINGS = re.compile(
    r"(?:\.(?:pkl|pickle|p|bin|dump|pt|json|txt|log|out|trace|fr|stack|stacks))+$", re.IGNORECASE
)
# All fields of an entry but its time, and all of a dump but its entries, that `condense` reads.
ENTRY_FIELDS = (
    "profiling_name",
    "process_group",
    "pg_id",
    "collective_seq_id",
    "seq_id",
    "p2p_seq_id",
    "state",
    "retired",
    "is_p2p",
    "input_sizes",
    "output_sizes",
    "input_dtypes",
    "timeout_ms",
    "frames",
)
DUMP_FIELDS = ("format", "version", "comm_lib_version", "nccl_version", "pg_status", "pg_config")
_P2P = re.compile(r"\b(send|recv) (\d{1,7})(->|<-)")


def entries_of(data: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """The entries of a dump that can be understood, in their order."""
    rows = _items(data.get("entries"))[-ENTRIES_CAP:]
    with contextlib.suppress(KeyError, TypeError):  # asked of all at once: most dumps are in order
        names = list(map(itemgetter("profiling_name"), rows))
        if set(map(type, rows)) == {dict} and set(map(type, names)) == {str} and "" not in names:
            return rows
    return [row for row in rows if isinstance(row, dict) and _is_named(row.get("profiling_name"))]


def _is_named(name: Any) -> bool:
    return name != "" if type(name) is str else bool(_text(name))


def condense(
    data: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], entry_places: Mapping[int, bool]
) -> Dict[str, Any]:
    """Return {format, version, backend, status, groups, entries, frames, dropped} of a dump, its
    `entries_of`, and the places of those to keep, each with whether it is unfinished.

    `status` maps a group's number in this process to {last_enqueued, last_started, last_completed}
    (-1: none). `dropped` counts the other entries. Frames are innermost first.
    """
    entries = [_entry(rows[place], pending) for place, pending in entry_places.items()]
    backends = Counter(entry["backend"] for entry in entries if entry["backend"])
    return {
        "format": _text(data.get("format")),
        "version": _text(data.get("version")),
        "backend": backends.most_common(1)[0][0] if backends else "",
        "comm_lib_version": _text(data.get("comm_lib_version") or data.get("nccl_version")),
        "status": dict(map(_status, list(_part(data.get("pg_status")).items())[:GROUPS_CAP])),
        "groups": [
            group
            for key, row in list(_part(data.get("pg_config")).items())[:GROUPS_CAP]
            if isinstance(row, dict) and (group := _group(key, row))["name"]
        ],  # gloo's has no name, and is no use
        "entries": entries,
        "frames": _frame_table(entries, [rows[place] for place in entry_places]),
        "dropped": len(_items(data.get("entries"))) - len(entries),
    }


def rank_in_name(path: str) -> Optional[int]:
    """The rank that a file's name tells: `…_rank_3`, `nccl_trace_rank_3`, `_dump_7`,
    `rank3.pkl`, `rank_3/dump.pkl`; None where none is told.
    """
    parts = [part for part in path.split("/") if part][-2:]
    for part in reversed(parts):
        found = _RANK_WORDS.findall(_ENDINGS.sub("", part))
        if found:
            return int(found[-1])
    last = _LAST_NUMBER.search(_ENDINGS.sub("", parts[-1])) if parts else None
    return int(last.group(1)) if last else None


def rank_in_entries(entries: List[Mapping[str, Any]]) -> Optional[int]:
    """The rank in point-to-point calls of the default group (`send 1->2`), or None."""
    ranks = {
        int(match.group(2))
        for entry in entries
        if entry.get("desc") == "default_pg" or entry.get("group") == "0"
        if (match := _P2P.search(str(entry.get("op")))) is not None
    }
    return ranks.pop() if len(ranks) == 1 else None


def created_at(row: Mapping[str, Any]) -> float:
    """When an entry was made, Unix seconds; 0 where it does not say so."""
    return _whole(row.get("time_created_ns"), 0) / 1e9


def _group(key: Any, row: Mapping[str, Any]) -> Dict[str, str]:
    ranks = row.get("ranks")
    return {
        "name": _text(row.get("name")) or _text(key),
        "desc": _text(row.get("desc")),
        "ranks": _ranges(
            ranks[:RANKS_TEXT_CAP]
            if isinstance(ranks, str)
            else ",".join(map(str, filter(_is_rank, _items(ranks))))
        ),
    }


def _is_rank(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000_000


@functools.lru_cache(maxsize=256)
def _ranges(ranks: str) -> str:
    """`[0, 1, 2, 7]` becomes `0-2,7`: most dumps of a job name the same thousands of ranks."""
    runs: List[List[int]] = []
    for rank in map(int, re.findall(r"\d{1,7}", ranks)):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def _status(item: Tuple[Any, Any]) -> Tuple[str, Dict[str, int]]:
    row = _part(item[1])
    return _text(item[0]), {
        f"last_{word}": _whole(row.get(f"last_{word}_collective"), -1)
        for word in ("enqueued", "started", "completed")
    }


def _entry(row: Mapping[str, Any], pending: bool) -> Dict[str, Any]:
    names = _items(row.get("process_group"))
    profiling_name = _text(row.get("profiling_name"))
    # `nccl:recv 3<-0`, `gloo:all_reduce`; a prefix of the backend's may hold a colon too.
    backend, colon, op = profiling_name.rpartition(":")
    pg_id = _whole(row.get("pg_id"), 0)
    sizes = {
        f"sizes_{way}": [_wholes(shape) for shape in _items(row.get(f"{way}put_sizes"))[:16]]
        for way in ("in", "out")
    }
    return {
        "group": group_of(row),
        "desc": _text(names[1]) if len(names) > 1 else "",
        "pg_id": pg_id,
        "seq": _whole(row.get("collective_seq_id", row.get("seq_id")), 0),
        "p2p_seq": _whole(row.get("p2p_seq_id"), 0),
        "op": op if colon else profiling_name,
        "backend": backend,
        "state": _text(row.get("state")) or "scheduled",
        "retired": row.get("retired") is True,
        "pending": pending,
        "is_p2p": row.get("is_p2p") is True,
        "dtypes_in": [_text(name) for name in _items(row.get("input_dtypes"))[:16]],
        "timeout_ms": _whole(row.get("timeout_ms"), 0),
        "created_at": created_at(row),
        **sizes,
    }


def places_to_keep(
    groups: Iterable[Hashable], unfinished: Sequence[int], last: int
) -> Dict[int, bool]:
    """The `last` places of each group, and the oldest unfinished ones, since there a rank waits;
    in their own order, each with whether it is unfinished. `groups` has the group of each entry.
    """
    by_group: Dict[Hashable, List[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        by_group[group].append(place)
    latest = {place for places in by_group.values() for place in places[-last:]}
    wanted = {*sorted(latest)[-last * 25 :], *unfinished[:PENDING_CAP]}
    is_unfinished = set(unfinished).__contains__
    return {place: is_unfinished(place) for place in sorted(wanted)}


def pending_places(rows: Sequence[Mapping[str, Any]]) -> List[int]:
    """Which entries are of unfinished work.

    gloo's entries stay `scheduled`; what it has finished it retires. NCCL retires only what
    completed, or what timed out.
    """
    open_rows = [place for place, row in enumerate(rows) if row.get("state") != "completed"]
    backends = {place: _backend(rows[place]) for place in open_rows}
    finishing = set()
    if any(rows[place].get("retired") is True for place in open_rows):
        finishing = {_backend(row) for row in rows if row.get("state") == "completed"}

    def done(place: int) -> bool:
        backend = backends[place]
        retired_is_done = backend == "gloo" or (backend not in finishing and "nccl" not in backend)
        return rows[place].get("retired") is True and retired_is_done

    return [place for place in open_rows if not done(place)]


def _backend(row: Mapping[str, Any]) -> str:
    return _text(row.get("profiling_name")).rpartition(":")[0]


def group_of(row: Mapping[str, Any]) -> str:
    """The name of an entry's group, or its number in the process where it has none."""
    names = row.get("process_group")
    if isinstance(names, (list, tuple)) and names:
        return _text(names[0])
    return str(_whole(row.get("pg_id"), 0))


def _frame_table(
    entries: List[Dict[str, Any]], rows: List[Mapping[str, Any]]
) -> List[Dict[str, Any]]:
    """Give each kept entry the places of its frames in one table of distinct frames."""
    table: Dict[Tuple[str, str, int], int] = {}
    for entry, row in zip(entries, rows):
        entry["frames"] = []
        for frame in _items(row.get("frames"))[:FRAMES_CAP]:
            if isinstance(frame, dict):
                key = (
                    _text(frame.get("name")),
                    _text(frame.get("filename"), 4096),
                    _whole(frame.get("line"), 0),
                )
                if key in table or len(table) < FRAME_TABLE_CAP:
                    entry["frames"].append(table.setdefault(key, len(table)))
    return [{"name": name, "file": file, "line": line} for name, file, line in table]


def _items(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _part(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any, cap: int = TEXT_CAP) -> str:
    if isinstance(value, str):
        return value[:cap]
    if isinstance(value, bytes):
        return value[:cap].decode("utf-8", "replace")
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < NUMBER_CAP
    return str(value) if is_number else ""


def _whole(value: Any, default: int) -> int:
    """A number, also one written as text, as the JSON form does."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < NUMBER_CAP
        else default
    )


def _wholes(value: Any) -> List[int]:
    return [_whole(item, 0) for item in _items(value)[:16]]
