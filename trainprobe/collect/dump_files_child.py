"""The program that `dump_files.py` runs: read dumps with CPython's own unpickler, where nothing that they do to it matters.

The unpickler in C is a hundred times as fast as a machine in Python. It runs no code, since it may
find no class, but a hostile file can make it allocate or hash without end: so it runs here, under
limits of memory and of time for each file. A file that is not plain data to it is left to the
machine in Python, which says why. Each answer is a line of JSON, written at once: whoever reads
them knows at which file this program ended.
"""

from __future__ import annotations

import gc
import hashlib
import json
import marshal
import math
import os
import resource
import sys
from typing import Any, Dict, Mapping, Sequence, Set

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import pickle
from io import BufferedReader, BytesIO

from trainprobe.collect import plain_pickle
from trainprobe.collect.flight_reading import (
    FILE_CAP_BYTES,
    LAST_PER_GROUP,
    NoDumpError,
    condense,
    entries_of,
    group_of,
    parse_dump,
    pending_places,
)
from trainprobe.regular_files import read_regular_file

MEMORY_BYTES = 2**30
FILE_CPU_S = 4.0
AHEAD_BYTES = 2**20  # the unpickler reads ahead only where it may peek
_TEXT: Any = {"encoding": "utf-8", "errors": "replace"}


class _PlainUnpickler(pickle.Unpickler):
    """Plain data only: what needs a class, a persistent object, an extension or a buffer fails."""

    def find_class(self, module: str, name: str) -> Any:
        raise plain_pickle.NotPlainError(f"it asks for {module[:80]}.{name[:80]}")

    def persistent_load(self, _pid: Any) -> Any:
        raise plain_pickle.NotPlainError("it asks for a persistent object")


def main() -> None:
    asked = json.load(sys.stdin)
    _limit(resource.RLIMIT_AS, MEMORY_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    gc.disable()  # plain data have no cycles, and those of hostile ones are collected below
    gc.freeze()
    for path, last in asked["files"]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + FILE_CPU_S))
        answer = json.dumps(_answer(path, last), ensure_ascii=False).encode("utf-8", "replace")
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
        gc.collect()


def _limit(what: int, value: int) -> None:
    """Lower the soft limit: passing that of CPU time ends this program."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _answer(path: str, last: int) -> Dict[str, Any]:
    """{said, calls} or {broken}."""
    try:
        data = parse_dump(read_regular_file(path, FILE_CAP_BYTES), _unpickle)
        rows = entries_of(data)
        unfinished = set(pending_places(rows))
        calls = {} if last == LAST_PER_GROUP else _calls(rows, unfinished)
        return {"said": condense({**data, "entries": rows}, last), "calls": calls}
    except NoDumpError as error:
        return {"broken": str(error)}
    except OSError as error:
        return {"broken": f"it cannot be read: {error.strerror}"}
    except ValueError as error:
        return {"broken": f"it {error}"}
    except MemoryError:
        return {"broken": "reading it takes too much memory"}


def _unpickle(content: bytes) -> Any:
    try:
        return _PlainUnpickler(BufferedReader(BytesIO(content), AHEAD_BYTES), **_TEXT).load()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, the other machine finds words for it
        return plain_pickle.loads(content, deadline_s=FILE_CPU_S * 0.75)


def _calls(rows: Sequence[Mapping[str, Any]], unfinished: Set[int]) -> Dict[str, Dict[str, Any]]:
    """Of each group the last collectives: {numbers, digests, pending: the first unfinished or None}."""
    groups: Dict[str, Dict[str, Any]] = {}
    for place in range(len(rows) - 1, -1, -1):
        row = rows[place]
        number = row.get("collective_seq_id", row.get("seq_id"))
        if type(number) is not int or row.get("is_p2p") is True:
            continue
        group = groups.setdefault(group_of(row), {"numbers": [], "digests": [], "pending": None})
        if place in unfinished:
            group["pending"] = number
        if len(group["numbers"]) < LAST_PER_GROUP:
            group["numbers"].append(number)
            group["digests"].append(_digest(row))
    return groups


def _digest(row: Mapping[str, Any]) -> str:
    """The same for calls that are alike: operation, sizes, types, and where the code stood."""
    parts = [row.get(name) for name in ("profiling_name", "input_sizes", "input_dtypes", "frames")]
    try:
        return hashlib.blake2b(marshal.dumps(parts, 1), digest_size=8).hexdigest()
    except ValueError:  # nested too deeply, or of another type
        return ""


if __name__ == "__main__":
    main()
