"""Dumps of the flight recorder in files: each is read once, in a child, and of what all ranks did alike only the end is kept."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from trainprobe.collect.flight_reading import LAST_PER_GROUP

READ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dump_files_child.py")
OUTPUT_CAP_BYTES = 512 * 2**20
# Entries of each group that are always kept, and those before the first that ranks do not share.
KEPT, BEFORE = 8, 4
RESTARTS = 20
AT_ONCE, FILES_EACH = 4, 8


class DumpRead(NamedTuple):
    """`said` is what `flight_reading.read_dump` returns, empty where `broken` says why there is none."""

    said: Mapping[str, Any]
    broken: str


def read_dump_files(paths: Sequence[str], ends: float) -> Dict[str, DumpRead]:
    """Read the files until `ends` (monotonic). Never raises; each path has an answer."""
    answers = _asked([(path, KEPT) for path in paths], ends)
    calls = {path: answer["calls"] for path, answer in answers.items() if answer.get("calls")}
    again = _too_short(calls, answers)
    answers.update(_asked([(path, LAST_PER_GROUP) for path in again], ends))
    return {path: DumpRead(answers[path].get("said") or {}, answers[path].get("broken", "")) for path in paths}


def _too_short(calls: Mapping[str, Any], answers: Mapping[str, Any]) -> List[str]:
    """The dumps of which more is needed than their end: ranks part, or wait, before it begins."""
    groups: Dict[str, List[Tuple[str, Any]]] = defaultdict(list)
    for path, of_path in calls.items():
        for group, rows in of_path.items():
            groups[group].append((path, rows))
    again = set()
    for group, members in groups.items():
        begin = _first_not_shared([rows for _, rows in members])
        for path, rows in members:
            kept = [row["seq"] for row in answers[path]["said"]["entries"] if row["group"] == group]
            if begin is not None and min(kept, default=0) > max(begin - BEFORE, min(rows["numbers"])):
                again.add(path)
    return sorted(again)


def _first_not_shared(members: Sequence[Mapping[str, Any]]) -> Any:
    """The first number, as far back as all dumps reach, that not all ranks have finished alike; None where they have."""
    by_number = [dict(zip(rows["numbers"], rows["digests"])) for rows in members]
    oldest = max(min(numbers) for numbers in by_number)
    shared = set(by_number[0].items())
    for numbers in by_number[1:]:
        shared.intersection_update(numbers.items())
    every = {number for numbers in by_number for number in numbers if number >= oldest}
    odd = every - {number for number, digest in shared if digest}
    odd.update(rows["pending"] for rows in members if rows["pending"] is not None)
    return min(odd, default=None)


def _asked(files: Sequence[Tuple[str, int]], ends: float) -> Dict[str, Dict[str, Any]]:
    """Answers by path, of as many children at once as there are CPUs for them."""
    at_once = max(1, min(AT_ONCE, len(os.sched_getaffinity(0)), len(files) // FILES_EACH))
    with ThreadPoolExecutor(at_once) as pool:
        parts = pool.map(lambda first: _asked_of_one(files[first::at_once], ends), range(at_once))
        return {path: answer for part in parts for path, answer in part.items()}


def _asked_of_one(files: Sequence[Tuple[str, int]], ends: float) -> Dict[str, Dict[str, Any]]:
    """A file at which the child ended is refused, and the others are asked of a new child."""
    answers: Dict[str, Dict[str, Any]] = {}
    left = list(files)
    for _ in range(RESTARTS):
        if not left or time.monotonic() > ends:
            break
        from trainprobe.system.run import run  # starting children needs ctypes, which judging a saved case must not load

        ran = run(
            [sys.executable, "-I", "-S", "-B", READ],
            timeout_s=max(0.1, ends - time.monotonic()),
            cwd="/",
            output_cap_bytes=OUTPUT_CAP_BYTES,
            input=json.dumps({"files": [(os.path.abspath(path), last) for path, last in left]}).encode(),
        )
        lines = ran.stdout.split(b"\n")[:-1][: len(left)]
        for (path, _last), line in zip(left, lines):
            answers[path] = json.loads(line)
        left = left[len(lines) :]
        if left and ran.ended.how != "timed_out":
            answers[left.pop(0)[0]] = {"broken": "reading it takes too long or too much memory"}
    for path, _last in left:
        answers[path] = {"broken": "no time was left to read it"}
    return answers
