"""Dumps of the flight recorder in files. Each is read in a child process; where the dumps are all
that is left of a job, only the end of what all ranks did alike is kept.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
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
_OF_ENDING = ("dump", "groups")


class DumpRead(NamedTuple):
    """One file that was read, or in `broken` why it could not be.

    `ending` is the same for dumps that end alike, which share one `content`: what
    `flight_reading.condense` returns without the times at which the entries were made. `times` are
    these, Unix seconds.
    """

    ending: str = ""
    content: Mapping[str, Any] = MappingProxyType({})
    times: Sequence[float] = ()
    broken: str = ""

    @property
    def dump(self) -> Dict[str, Any]:
        """What `flight_reading.condense` returns; empty where it is broken."""
        return dated(self.content, self.times)


def dated(content: Mapping[str, Any], times: Sequence[float]) -> Dict[str, Any]:
    """The content of a dump with the times of its entries."""
    if not content:
        return {}
    entries = [{**entry, "created_at": time} for entry, time in zip(content["entries"], times)]
    return {**content, "entries": entries}


@dataclass
class _Answers:
    """What the children answered. An ending is {dump, groups?}; `histories` are the sequences of
    calls that groups name.
    """

    read: Dict[str, Tuple[str, Sequence[float]]] = field(default_factory=dict)
    broken: Dict[str, str] = field(default_factory=dict)
    endings: Dict[str, Mapping[str, Any]] = field(default_factory=dict)
    histories: Dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self, path: str, line: bytes) -> None:
        answer = json.loads(line)
        if "broken" in answer:
            self.refuse(path, answer["broken"])
            return
        key = answer["ending"]
        if "dump" in answer and key not in self.endings:
            self.endings[key] = {name: answer[name] for name in _OF_ENDING if name in answer}
        self.histories.update(answer.get("histories", {}))
        self.read[path] = (key, answer["times"])
        self.broken.pop(path, None)

    def refuse(self, path: str, why: str) -> None:
        self.broken[path] = why
        self.read.pop(path, None)

    def of(self, path: str) -> DumpRead:
        if path in self.broken:
            return DumpRead(broken=self.broken[path])
        key, times = self.read[path]
        return DumpRead(key, self.endings[key]["dump"], times)


def read_dump_files(
    paths: Sequence[str], ends: float, *, shorten: bool = False
) -> Dict[str, DumpRead]:
    """Read the files until `ends` (monotonic). Never raises; each path has an answer.

    Of each group the last entries are kept, and the unfinished ones. With `shorten`, the files are
    all that there is, and what all of them share is left out.
    """
    answers = _Answers()
    if shorten:
        _ask(answers, paths, KEPT, ends, whole=False)
        _ask(answers, _too_short(answers), LAST_PER_GROUP, ends, whole=True)
    else:
        _ask(answers, paths, LAST_PER_GROUP, ends, whole=True)
    return {path: answers.of(path) for path in paths}


def read_dump_content(content: bytes, ends: float) -> DumpRead:
    """Read a dump that lies in no file."""
    from trainprobe.system.anonymous_files import anonymous_file

    try:
        with anonymous_file("dump") as file:  # no name, so that nothing is left where we are killed
            file.write(content)
            path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            return read_dump_files([path], ends)[path]
    except OSError as error:
        return DumpRead(broken=f"it cannot be laid aside to be read: {error.strerror}")


class _Group(NamedTuple):
    """One group in dumps that end alike. `sites` maps a call's number to where the code stood, for
    the calls that were kept.
    """

    ending: str
    history: str
    pending: Optional[int]
    sites: Mapping[int, Tuple[Any, ...]]


def _too_short(answers: _Answers) -> List[str]:
    """The dumps of which more is needed than their end: ranks part, or wait, before it begins."""
    groups: Dict[str, List[_Group]] = defaultdict(list)
    for key, ending in answers.endings.items():
        sites = _sites(ending["dump"])
        for name, row in ending["groups"].items():
            groups[name].append(_Group(key, row["history"], row["pending"], sites.get(name, {})))
    again = set()
    for members in groups.values():
        begin = _first_not_shared(members, answers.histories)
        if begin is None:
            continue
        for member in members:
            oldest = max(begin - BEFORE, min(answers.histories[member.history]["numbers"]))
            if min(member.sites, default=0) > oldest:
                again.add(member.ending)
    return sorted(path for path, (key, _) in answers.read.items() if key in again)


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


def _ask(answers: _Answers, paths: Sequence[str], last: int, ends: float, *, whole: bool) -> None:
    """Fill in the answers of as many children at once as there are CPUs for them."""
    at_once = max(1, min(AT_ONCE, len(os.sched_getaffinity(0)), len(paths) // FILES_EACH))
    asked = {"last": last, "whole": whole}
    with ThreadPoolExecutor(at_once) as pool:
        for part in pool.map(
            lambda first: _lines_of_one(paths[first::at_once], asked, ends), range(at_once)
        ):
            for path, line in part:
                answers.take(path, line)


def _lines_of_one(
    paths: Sequence[str], asked: Mapping[str, Any], ends: float
) -> List[Tuple[str, bytes]]:
    """A file at which the child ended is refused, and the others are asked of a new child."""
    # Starting children needs ctypes, which judging a saved case must not load.
    from trainprobe.system.run import run

    found: List[Tuple[str, bytes]] = []
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
        found += zip(left, lines)
        left = left[len(lines) :]
        if left and ran.ended.how != "timed_out":
            found.append((left.pop(0), _refused("reading it takes too long or too much memory")))
    return [*found, *((path, _refused(NO_TIME)) for path in left)]


def _refused(why: str) -> bytes:
    return json.dumps({"broken": why}).encode()
