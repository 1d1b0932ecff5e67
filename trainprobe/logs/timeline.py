"""Assigns each part of each file to an attempt of the job, by paths, lines or times."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from trainprobe.logs.lines import Line
from trainprobe.logs.reading import Attempt, ReadFile
from trainprobe.logtext.attempts import attempt_of_path

LAST = "job"
SLACK_S = 2.0
READ = 1000
# What torchrun's agent prints once in each attempt that lost a process, after the last output of
# all its workers (torch/distributed/elastic/multiprocessing/api.py, 1.9 to 2.13). It logs the
# beginning of the next attempt at the level INFO only.
_LOST = re.compile(
    r"^(?:[DIWE]\d{4} \d\d:\d\d:\d\d\.\d{1,9} (?P<agent>\d{1,9}) )?.{0,300}?\bfailed \(exitcode:"
    r" -?\d{1,5}\) local_rank: \d{1,5} \(pid: \d{1,9}\)"
)


def split_at_restarts(files: Sequence[ReadFile]) -> None:
    """Split logs of several attempts, in place, where torchrun's agent lost a process and went on.

    An agent that prints this twice has restarted in between. One that prints it as often as the
    trees of --log-dir have attempts, or once less, has begun an attempt after each.
    """
    trees = 1 + max(
        (number for file in files if (number := attempt_of_path(file.path)) is not None), default=0
    )
    for file in files:
        if file.attempts and attempt_of_path(file.path) is None:
            _split(file, trees if len(file.attempts) == 1 else 0)


def _split(file: ReadFile, trees: int) -> None:
    parts: list[Attempt] = []
    for attempt in file.attempts:
        stops = _stops(attempt, trees)
        begins, rows = attempt.begins, attempt.rows
        number = max(attempt.number, parts[-1].number + 1 if parts else 0)
        for stop in stops:
            parts.append(Attempt(number, begins, stop, [row for row in rows if row.number <= stop]))
            begins, rows, number = stop + 1, [row for row in rows if row.number > stop], number + 1
        parts.append(Attempt(number, begins, attempt.last, rows))
    file.attempts = parts


def _stops(attempt: Attempt, trees: int) -> list[int]:
    """The numbers of the lines in this stretch that end an attempt before another one."""
    lost: dict[tuple[str, str], list[Line]] = {}
    for row in attempt.rows:
        if "failed (exitcode" in row.text and (match := _LOST.match(row.text[:READ])):
            lost.setdefault((row.host, match.group("agent") or ""), []).append(row)
    if not lost:
        return []
    lines = sorted({row.number for rows in lost.values() for row in rows})
    if len(lost) == 1 and trees > 1 and len(lines) in (trees - 1, trees):
        return [number for number in lines[: trees - 1] if attempt.rows[-1].number > number]
    # The agents of all hosts fail, one after the other, before the first of them restarts.
    named = [sorted(row.number for row in rows) for agent, rows in lost.items() if agent[1]]
    ends = [
        [numbers[place] for numbers in named if place < len(numbers)]
        for place in range(max(map(len, named), default=0))
    ]
    in_turn = all(max(before) < min(after) for before, after in itertools.pairwise(ends))
    return [max(numbers) for numbers in ends[:-1]] if in_turn else []


class Timeline:
    """The attempts over all files; `total` is how many there were."""

    def __init__(self, files: Sequence[ReadFile]) -> None:
        logs = [file for file in files if file.attempts]
        self._by_path = {file.path: attempt_of_path(file.path) for file in files}
        numbers = [attempt.number for file in logs for attempt in file.attempts]
        named = [self._by_path[file.path] for file in files if file.attempts or file.content]
        self.total = 1 + max([*numbers, *(each for each in named if each is not None)], default=0)
        self._begins = self._moments(logs)

    def cell(self, file: ReadFile, attempt: Attempt) -> str:
        """Return `job` for the last attempt, `attempt-0` and so on for the others."""
        return self._cell(self._number(file, attempt))

    def cell_of_path(self, path: str) -> str:
        """The same for a file that belongs to one attempt: the one in its path, or the last."""
        named = self._by_path.get(path)
        return LAST if named is None else self._cell(named)

    def _cell(self, number: int) -> str:
        return LAST if number >= self.total - 1 else f"attempt-{number}"

    def _number(self, file: ReadFile, attempt: Attempt) -> int:
        named = self._by_path[file.path]
        if named is not None:
            return named
        if len(file.attempts) > 1 or attempt.number:
            return attempt.number
        last = (
            max((row.at for row in attempt.rows if row.at is not None), default=None)
            if file.wall
            else None
        )
        if last is None:
            return self.total - 1
        return max(
            (number for number, begins in self._begins.items() if begins <= last + SLACK_S),
            default=self.total - 1,
        )

    def _moments(self, logs: Sequence[ReadFile]) -> dict[int, float]:
        """When each attempt began, from the files that separate them."""
        found: dict[int, float] = {}
        for file in logs:
            if file.wall and (len(file.attempts) > 1 or self._by_path[file.path] is not None):
                for attempt in file.attempts:
                    named = self._by_path[file.path]
                    number = attempt.number if named is None else named
                    first = next((row.at for row in attempt.rows if row.at is not None), None)
                    if first is not None:
                        found[number] = min(first, found.get(number, first))
        return found if len(found) == self.total else {}
