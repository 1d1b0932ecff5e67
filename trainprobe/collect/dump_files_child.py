"""The program that `dump_files.py` runs: it reads dumps with CPython's own unpickler and JSON
scanner, where a hostile file can harm nothing.

The unpickler runs no code, since it may find no class, but a hostile file can make it allocate or
hash without end. So it runs here, under limits of memory and of CPU time for each file. Each answer
is one line of JSON, written at once: the parent knows at which file this program ended.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import marshal
import math
import os
import resource
import sys
from collections import deque
from io import BytesIO
from operator import itemgetter
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import pickle

from trainprobe.collect.flight_reading import (
    DUMP_FIELDS,
    ENTRIES_CAP,
    ENTRY_FIELDS,
    FILE_CAP_BYTES,
    LAST_PER_GROUP,
    condense,
    created_at,
    entries_of,
    group_of,
    pending_places,
    places_to_keep,
)
from trainprobe.regular_files import read_regular_file

MEMORY_BYTES = 2**30
FILE_CPU_S = 4.0
UNDECODABLE_CAP = 32
REMEMBERED = 8
MARKS = (b"pg_status", b"pg_config", b"entries")  # every dump holds at least one of them
# What tells calls apart. Where code stood is not compared: that differs less often than it costs.
_FIELDS = tuple(
    """
    pg_id collective_seq_id profiling_name input_sizes output_sizes input_dtypes is_p2p state
    retired
    """.split()
)
_fields_of = itemgetter(*_FIELDS)
Fields = List[Tuple[Any, ...]]
Outline = Tuple[int, int, List[Any], List[Tuple[Any, ...]]]


class NoDumpError(ValueError):
    """The content is no dump of the flight recorder. The message says why."""


class _Content(BytesIO):
    """All of a file. The unpickler reads ahead only where it may peek."""

    def peek(self, _size: int) -> bytes:
        """Return all that follows; of content that nothing was read of, this makes no copy."""
        place = self.tell()
        rest = self.read()
        self.seek(place)
        return rest


class _PlainUnpickler(pickle.Unpickler):
    """Plain data only: what needs a class, a persistent object, an extension or a buffer fails."""

    def find_class(self, module: str, name: str) -> Any:
        raise NoDumpError(f"it asks for {module[:80]}.{name[:80]}, which plain data never need")

    def persistent_load(self, _pid: Any) -> Any:
        raise NoDumpError("it asks for a persistent object, which plain data never need")


def main() -> None:
    asked = json.load(sys.stdin)
    _limit(resource.RLIMIT_AS, MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    gc.disable()  # plain data have no cycles, and those of hostile ones are collected below
    gc.freeze()
    histories, endings = Histories(), Endings()
    for path in asked["files"]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + FILE_CPU_S))
        try:
            line = _line(path, asked["last"], endings, None if asked["whole"] else histories)
        except _UNREADABLE as error:
            line = _json({"broken": _why(error)})
            gc.collect()
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _limit(what: int, value: int) -> None:
    """Lower the soft limit: passing that of CPU time ends this program."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _line(path: str, last: int, endings: Endings, histories: Optional[Histories]) -> bytes:
    """The answer of one file: {ending, times}; once for each ending what dumps with it hold, {dump}
    and {groups} where `histories` are compared; and {histories} that no answer has held yet.
    """
    content = read_regular_file(path, FILE_CAP_BYTES)
    if histories is None:
        return endings.line({"dump": read_dump(content, last)})
    data = parse_dump(content)
    rows, analysed = histories.analyse(data, last)
    outline = _outline(data, rows, analysed)
    times = [created_at(rows[place]) for place in analysed.kept]
    line = endings.line_of_earlier(outline, times)
    if line is None:
        groups = {
            group_of(rows[place]): {"history": key, "pending": first}
            for place, key, first in analysed.groups
        }
        answer = {"dump": condense(data, rows, analysed.kept), "groups": groups}
        line = endings.line(answer, histories.take_new(), outline)
    return line


_UNREADABLE = (OSError, ValueError, MemoryError, RecursionError)


def _why(error: BaseException) -> str:
    if isinstance(error, NoDumpError):
        return str(error)
    if isinstance(error, OSError):
        return f"it cannot be read: {error.strerror}"
    return f"it {error}" if isinstance(error, ValueError) else "reading it takes too much memory"


def _outline(data: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], of: Analysed) -> Outline:
    """All of a dump that `condense` reads, but for the times: dumps that share it end alike."""
    kept = [tuple(map(rows[place].get, ENTRY_FIELDS)) for place in of.kept]
    return (id(of), len(data.get("entries") or ()), list(map(data.get, DUMP_FIELDS)), kept)


def read_dump(content: bytes, last: int = LAST_PER_GROUP) -> Dict[str, Any]:
    """What `condense` makes of the content of one dump; NoDumpError says why there is none."""
    data = parse_dump(content)
    rows = entries_of(data)
    return condense(data, rows, places_to_keep(map(group_of, rows), pending_places(rows), last))


def parse_dump(content: bytes) -> Dict[str, Any]:
    """Return the dump's own dictionary; NoDumpError says why there is none."""
    head = content[:64].lstrip()
    if not head:
        raise NoDumpError("it is empty; its writer may have been ended over it")
    is_json = head[:1] == b"{"
    data = _from_json(content) if is_json else _from_pickle(content)
    if not isinstance(data, dict) or not (
        "pg_status" in data or "pg_config" in data or "entries" in data
    ):
        raise NoDumpError(
            "it is no dump of the flight recorder: it has neither entries nor process groups"
        )
    return {**data, "format": "json" if is_json else "pickle"}


def _from_json(content: bytes) -> Any:
    if not any(mark in content for mark in MARKS):
        raise NoDumpError(
            "it is no dump of the flight recorder: it has neither entries nor process groups"
        )
    try:
        return json.loads(content.decode("utf-8", "replace"))
    except RecursionError as error:
        raise NoDumpError("it is nested too deeply") from error
    except ValueError as error:
        raise NoDumpError("it is no JSON, or it ends in the middle") from error


def _from_pickle(content: bytes) -> Any:
    """Text that is not UTF-8, such as the name of a thread cut in a character, is read without
    its odd bytes.
    """
    for _ in range(UNDECODABLE_CAP):
        try:
            return _PlainUnpickler(_Content(content), encoding="utf-8", errors="replace").load()
        except UnicodeDecodeError as error:
            text = bytes(error.object)
            content = content.replace(text, bytes(byte if byte < 128 else 63 for byte in text))
        except (MemoryError, NoDumpError):
            raise
        except Exception as error:
            raise NoDumpError(
                "it is no pickle of plain data: it ends in the middle, or its parts do not fit"
                " together"
            ) from error
    raise NoDumpError("it is no pickle of plain data: its text is not UTF-8")


class Analysed(NamedTuple):
    """`kept` are the places of the entries to keep, each with whether it is unfinished. `groups`
    holds for each group the place of one of its entries, the key of its history, and the number of
    its first unfinished call.
    """

    kept: Dict[int, bool]
    groups: List[Tuple[int, str, Optional[int]]]


class Endings:
    """The answers handed over so far, without the times of their entries. Most ranks of a job end
    alike, so each such answer is handed over once.
    """

    def __init__(self) -> None:
        self._known: Set[bytes] = set()
        self._recent: Deque[Tuple[Outline, List[int], List[bool], str]] = deque(maxlen=REMEMBERED)

    def line_of_earlier(self, outline: Outline, times: List[float]) -> Optional[bytes]:
        """The line for a dump that ends like one of the last; None where none does. Entries that
        were made in another order make another ending.
        """
        shape = _order(times)
        for known, order, unknown, key in self._recent:
            if (order, unknown) == shape and known == outline:
                return _json({"ending": key, "times": times})
        return None

    def line(
        self,
        answer: Dict[str, Any],
        histories: Optional[Mapping[str, Any]] = None,
        outline: Optional[Outline] = None,
    ) -> bytes:
        """The line for any dump, by what it holds; `outline` is remembered."""
        times = [entry.pop("created_at") for entry in answer["dump"]["entries"]]
        content, shape = _json(answer), _order(times)
        digest = hashlib.blake2b(content, digest_size=16)
        digest.update(_json(shape))
        if outline is not None:
            self._recent.appendleft((outline, *shape, digest.hexdigest()))
        row: Dict[str, Any] = {"ending": digest.hexdigest(), "times": times}
        if histories:
            row["histories"] = histories
        if digest.digest() in self._known:
            return _json(row)
        self._known.add(digest.digest())
        return _json(row)[:-1] + b"," + content[1:]


def _order(times: List[float]) -> Tuple[List[int], List[bool]]:
    """The places of entries in the order of their times, and which have none."""
    return sorted(range(len(times)), key=times.__getitem__), [not time for time in times]


class Histories:
    """The sequences of calls read so far. Most ranks of a job share theirs, so each is analysed
    and handed over once.
    """

    def __init__(self) -> None:
        self._digests: Dict[bytes, str] = {}
        self._recent: Deque[Tuple[Fields, Analysed]] = deque(maxlen=REMEMBERED)
        self._known: Set[str] = set()
        self._new: Dict[str, Dict[str, Any]] = {}

    def analyse(
        self, data: Mapping[str, Any], last: int
    ) -> Tuple[Sequence[Mapping[str, Any]], Analysed]:
        """The `entries_of` a dump, and what they show."""
        entries = data.get("entries")
        if type(entries) is list and len(entries) <= ENTRIES_CAP:
            with contextlib.suppress(KeyError, TypeError):
                known = self._recalled(list(map(_fields_of, entries)))
                if known is not None:
                    return entries, known  # those of that dump could all be understood
        rows = entries_of(data)
        try:
            fields = list(map(_fields_of, rows))
        except KeyError:
            fields = []
        if set(map(type, map(itemgetter(0), fields))) != {int}:
            fields = [_older_fields(row) for row in rows]
        analysed = self._recalled(fields)
        if analysed is None:
            analysed = self._analysed(fields, pending_places(rows), last)
            self._recent.appendleft((fields, analysed))
        return rows, analysed

    def _recalled(self, fields: Fields) -> Optional[Analysed]:
        """What was found in one of the last dumps, if its entries tell the same."""
        for place, (earlier, analysed) in enumerate(self._recent):
            if earlier == fields:
                if place:
                    del self._recent[place]
                    self._recent.appendleft((earlier, analysed))
                return analysed
        return None

    def take_new(self) -> Dict[str, Dict[str, Any]]:
        """The histories that no answer has held yet, {numbers, calls} by key."""
        new, self._new = self._new, {}
        return new

    def _analysed(self, fields: Fields, unfinished: List[int], last: int) -> Analysed:
        kept = places_to_keep([row[0] for row in fields], unfinished, last)
        pending = set(unfinished)
        places: Dict[Any, List[int]] = {}
        for place, (group, number, *_, is_p2p, _state, _retired) in enumerate(fields):
            if type(number) is int and is_p2p is not True:
                places.setdefault(group, []).append(place)
        groups = []
        for mine in places.values():
            first = None
            for at, place in enumerate(mine):
                if place in pending:
                    first = fields[place][1]
                    kept.setdefault(mine[max(0, at - 1)], False)  # the call that it made before
                    break
            del mine[:-LAST_PER_GROUP]
            numbers = [fields[place][1] for place in mine]
            calls = [self._digest(fields[place][2:6]) for place in mine]
            key = _hashed(repr((numbers, calls)).encode())
            if key not in self._known:
                self._known.add(key)
                self._new[key] = {"numbers": numbers, "calls": calls}
            groups.append((mine[-1], key, first))
        return Analysed(dict(sorted(kept.items())), groups)

    def _digest(self, call: Tuple[Any, ...]) -> str:
        """The same for calls of one operation, sizes and types; empty where they cannot be
        compared.
        """
        try:
            content = marshal.dumps(call, 2)
        except ValueError:  # nested too deeply, or of another type
            return ""
        return self._digests.get(content) or self._digests.setdefault(content, _hashed(content))


def _hashed(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _older_fields(row: Mapping[str, Any]) -> Tuple[Any, ...]:
    number = row.get("collective_seq_id", row.get("seq_id"))
    return (group_of(row), number, *map(row.get, _FIELDS[2:]))


if __name__ == "__main__":
    main()
