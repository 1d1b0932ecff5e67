"""Assigns ranks to files and lines, by prefixes, paths, processes and numbers within a host."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainprobe.logs.lines import Line
from trainprobe.logs.reading import ReadFile
from trainprobe.logtext.paths import host_of_path, ranks_of_paths

# NCCL prints the rank of a process at its start: `node7:4711:4711 [3] NCCL INFO comm 0x… rank 11
# nranks 16 cudaDev 3 …`.
_OWN_RANK = re.compile(r"\bNCCL INFO .{0,200}?\brank (\d{1,7}) nranks (\d{1,7})\b")
MOSTLY = 0.5
# torchrun and DeepSpeed's launcher when they end their ranks; and what torchrun says at its start
# where it has more than one.
_ENDS_A_RANK = re.compile(r"\b(?:Sending process|Killing subprocess) (\d{1,9})\b")
_STARTS_SEVERAL = "Setting OMP_NUM_THREADS environment variable for each process to be"


@dataclass(frozen=True)
class FileOwner:
    """Who wrote a file: `rank` (None for several or none), the source of that, and the host."""

    rank: int | None = None
    source: str = ""
    host: str = ""


class RankAssignment:
    """Knows the rank of every row, once all files were read."""

    def __init__(self, files: Sequence[ReadFile]) -> None:
        logs = [file for file in files if file.attempts]
        tasks = {_family(file.path) for file in logs if _starts_several(file)}
        self._paths = {
            path: rank
            for path, rank in ranks_of_paths([file.path for file in logs]).items()
            if _family(path) not in tasks
        }
        self._pids: dict[tuple[str, int], int] = {}
        self._worlds: Counter[int] = Counter()
        known = {line.host for file in logs for line in _lines(file)} - {""}
        self._hosts: dict[str, str] = {file.path: host_of_path(file.path, known) for file in logs}
        hosts: set[str] = set()
        most = -1
        for file in logs:
            for line in _lines(file):
                hosts.add(line.host or self._hosts[file.path])
                self._learn(line)
                if not line.certain and line.rank is not None:
                    most = max(most, line.rank)
        self._several = sorted(hosts - {""}) if len(hosts - {""}) > 1 else []
        self._each = most + 1
        self._whose = {file.path: self._of_file(file) for file in logs}

    def of_file(self, file: ReadFile) -> FileOwner:
        return self._whose[file.path]

    def of_line(self, file: ReadFile, line: Line) -> int | None:
        """Return the rank of a row, None if it is the file's own or unknown."""
        whole = self._whose[file.path]
        if line.certain:
            return line.rank
        if line.pid is not None and (line.host, line.pid) in self._pids:
            return self._pids[line.host, line.pid]
        if line.rank is None or whole.rank is not None:
            return None
        return self._counted(line.rank, line.host or whole.host)

    def _counted(self, local: int, host: str) -> int | None:
        """The rank of a number within a host. Several hosts count in the order of their names, as
        in torchrun's rendezvous.
        """
        if not self._several:
            return local
        return self._several.index(host) * self._each + local if host in self._several else local

    def _learn(self, line: Line) -> None:
        if line.pid is None:
            return
        if line.certain and line.rank is not None:
            self._pids[line.host, line.pid] = line.rank
        elif match := _OWN_RANK.search(line.text):
            world = int(match.group(2))
            # Smaller groups have their own ranks: only the largest group has the job's.
            if world >= max(self._worlds, default=0):
                if world > max(self._worlds, default=0):
                    self._pids.clear()
                self._worlds[world] += 1
                self._pids.setdefault((line.host, line.pid), int(match.group(1)))

    def _of_file(self, file: ReadFile) -> FileOwner:
        host, lines = self._hosts[file.path], _lines(file)
        ranks = Counter(line.rank for line in lines if line.certain)
        by_path = self._paths.get(file.path)
        if len(ranks) == 1:
            rank = next(iter(ranks))
            # one rank has one number within its host; two of these are two ranks
            numbers = {line.rank for line in lines if not line.certain} - {None}
            mostly = ranks[rank] >= MOSTLY * len(lines) and len(numbers) < 2
            if by_path is not None or mostly:
                return FileOwner(rank, "prefix" if by_path != rank else "path", host)
        if by_path is None or len(ranks) > 1:
            return FileOwner(None, "", host)
        return FileOwner(by_path, "path", host)


def _starts_several(file: ReadFile) -> bool:
    """Is it the output of a launcher of several ranks? Then the number in its name is that of the
    launcher's task, and so it is for the files beside it.
    """
    ended = set()
    for line in _lines(file):
        if _STARTS_SEVERAL in line.text:
            return True
        if match := _ENDS_A_RANK.search(line.text):
            ended.add(match.group(1))
    return len(ended) > 1


def _family(path: str) -> tuple[str, str]:
    """What the files of several tasks have in common."""
    folder, name = os.path.split(path)
    return folder, re.sub(r"\d+", "#", name)


def _lines(file: ReadFile) -> list[Line]:
    return [line for attempt in file.attempts for line in attempt.rows]
