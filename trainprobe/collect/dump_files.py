"""Dumps of the flight recorder in files. Each is read in a child process; where the dumps are all
that is left of a job, only the end of what all ranks did alike is kept.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainprobe.collect.flight_reading import LAST_PER_GROUP

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dump_files_child.py")
OUTPUT_CAP_BYTES = 512 * 2**20
# Entries of each group that are always kept, besides the unfinished ones and the one before these;
# and how many before the first that ranks do not share are needed.
KEPT, BEFORE = 2, 1
RESTARTS = 20
READ_S = 10.0
NO_TIME = "no time was left to read it"
AT_ONCE, FILES_EACH = 4, 8


class DumpRead(NamedTuple):
    """`dump` is what `flight_reading.condense` returns, empty where `broken` says why there is
    none.
    """

    dump: Mapping[str, Any]
    broken: str


Answers = Dict[str, Dict[str, Any]]


def read_dump_files(
    paths: Sequence[str], ends: float, *, shorten: bool = False
) -> Dict[str, DumpRead]:
    """Read the files until `ends` (monotonic). Never raises; each path has an answer.

    Of each group the last entries are kept, and the unfinished ones. With `shorten`, the files are
    all that there is, and what all of them share is left out.
    """
    if shorten:
        answers = _answers(paths, KEPT, ends, whole=False)
        answers.update(_answers(_too_short(answers), LAST_PER_GROUP, ends, whole=True))
    else:
        answers = _answers(paths, LAST_PER_GROUP, ends, whole=True)
    return {
        path: DumpRead(answers[path].get("dump") or {}, answers[path].get("broken", ""))
        for path in paths
    }


def read_dump_content(content: bytes, ends: float) -> DumpRead:
    """Read a dump that lies in no file."""
    try:
        with tempfile.NamedTemporaryFile(prefix="trainprobe-dump-") as file:
            file.write(content)
            file.flush()
            return read_dump_files([file.name], ends)[file.name]
    except OSError as error:
        return DumpRead({}, f"it cannot be laid aside to be read: {error.strerror}")


class _Group(NamedTuple):
    """One group in one dump. `site` maps a call's number to where the code stood, for the calls
    that were kept.
    """

    path: str
    history: str
    pending: Optional[int]
    sites: Mapping[int, Tuple[Any, ...]]


def _too_short(answers: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """The dumps of which more is needed than their end: ranks part, or wait, before it begins."""
    histories: Dict[str, Mapping[str, Any]] = {}
    groups: Dict[str, List[_Group]] = defaultdict(list)
    for path, answer in answers.items():
        histories.update(answer.get("histories", {}))
        if "dump" in answer:
            sites = _sites(answer["dump"])
            for name, row in answer["groups"].items():
                groups[name].append(
                    _Group(path, row["history"], row["pending"], sites.get(name, {}))
                )
    again = set()
    for members in groups.values():
        begin = _first_not_shared(members, histories)
        if begin is None:
            continue
        for member in members:
            oldest = max(begin - BEFORE, min(histories[member.history]["numbers"]))
            if min(member.sites, default=0) > oldest:
                again.add(member.path)
    return sorted(again)


def _sites(dump: Mapping[str, Any]) -> Dict[str, Dict[int, Tuple[Any, ...]]]:
    """By group and number of the call. Paths differ between containers, so a file's name counts."""
    table = [
        (os.path.basename(frame["file"]), frame["line"], frame["name"]) for frame in dump["frames"]
    ]
    sites: Dict[str, Dict[int, Tuple[Any, ...]]] = defaultdict(dict)
    for entry in dump["entries"]:
        if not entry["is_p2p"]:
            frames = tuple([table[place] for place in entry["frames"]])
            sites[entry["group"]].setdefault(entry["seq"], frames)
    return sites


def _first_not_shared(
    members: Sequence[_Group], histories: Mapping[str, Mapping[str, Any]]
) -> Optional[int]:
    """The first number, as far back as all dumps reach, that not all ranks have finished alike;
    None where they have.

    Two places in the code may rightly make one call, unless the ranks do not agree again later. So
    places are compared only at the oldest call that all dumps kept.
    """
    by_number = [
        dict(zip(histories[key]["numbers"], histories[key]["calls"]))
        for key in {member.history for member in members}
    ]
    oldest = max(min(numbers) for numbers in by_number)
    shared = set(by_number[0].items()).intersection(*(calls.items() for calls in by_number[1:]))
    every = {number for numbers in by_number for number in numbers if number >= oldest}
    odd = every - {number for number, call in shared if call}
    odd.update(member.pending for member in members if member.pending is not None)
    kept = max((min(member.sites) for member in members if member.sites), default=None)
    if kept is not None and len({member.sites.get(kept) for member in members}) > 1:
        odd.add(oldest)
    return min(odd, default=None)


def _answers(paths: Sequence[str], last: int, ends: float, *, whole: bool) -> Answers:
    """Answers by path, of as many children at once as there are CPUs for them."""
    at_once = max(1, min(AT_ONCE, len(os.sched_getaffinity(0)), len(paths) // FILES_EACH))
    asked = {"last": last, "whole": whole}
    with ThreadPoolExecutor(at_once) as pool:
        parts = pool.map(
            lambda first: _answers_of_one(paths[first::at_once], asked, ends), range(at_once)
        )
        return {path: answer for part in parts for path, answer in part.items()}


def _answers_of_one(paths: Sequence[str], asked: Mapping[str, Any], ends: float) -> Answers:
    """A file at which the child ended is refused, and the others are asked of a new child."""
    # Starting children needs ctypes, which judging a saved case must not load.
    from trainprobe.system.run import run

    answers: Answers = {}
    left = list(paths)
    for _ in range(RESTARTS):
        if not left or time.monotonic() > ends:
            break
        ran = run(
            [sys.executable, "-I", "-S", "-B", PROGRAM],
            timeout_s=max(0.1, ends - time.monotonic()),
            cwd="/",
            output_cap_bytes=OUTPUT_CAP_BYTES,
            input=json.dumps({**asked, "files": list(map(os.path.abspath, left))}).encode(),
        )
        lines = ran.stdout.split(b"\n")[:-1][: len(left)]
        for path, line in zip(left, lines):
            answers[path] = json.loads(line)
        left = left[len(lines) :]
        if left and ran.ended.how != "timed_out":
            answers[left.pop(0)] = {"broken": "reading it takes too long or too much memory"}
    for path in left:
        answers[path] = {"broken": NO_TIME}
    return answers
