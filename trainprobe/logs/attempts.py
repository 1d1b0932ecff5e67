"""Which attempt of the job each part of each file belongs to: told by paths, by the lines themselves, or by the time."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.logs.reading import Attempt, ReadFile
from trainprobe.logtext.attempts import attempt_of_path

LAST = "job"
SLACK_S = 2.0


class Timeline:
    """The attempts over all files; `total` is how many there were."""

    def __init__(self, files: Sequence[ReadFile]) -> None:
        logs = [file for file in files if file.attempts]
        self._by_path = {file.path: attempt_of_path(file.path) for file in logs}
        numbers = [attempt.number for file in logs for attempt in file.attempts]
        self.total = 1 + max([*numbers, *(number for number in self._by_path.values() if number is not None)], default=0)
        self._begins = self._moments(logs)

    def cell(self, file: ReadFile, attempt: Attempt) -> str:
        """Return `job` for the last attempt, `attempt-0` and so on for those before it."""
        number = self._number(file, attempt)
        return LAST if number >= self.total - 1 else f"attempt-{number}"

    def _number(self, file: ReadFile, attempt: Attempt) -> int:
        named = self._by_path[file.path]
        if named is not None:
            return named
        if len(file.attempts) > 1 or attempt.number:
            return attempt.number
        last = max((row.at for row in attempt.rows if row.at is not None), default=None) if file.wall else None
        if last is None:
            return self.total - 1
        return max((number for number, begins in self._begins.items() if begins <= last + SLACK_S), default=self.total - 1)

    def _moments(self, logs: Sequence[ReadFile]) -> dict[int, float]:
        """When each attempt began, by the files that tell them apart."""
        found: dict[int, float] = {}
        for file in logs:
            if file.wall and (len(file.attempts) > 1 or self._by_path[file.path] is not None):
                for attempt in file.attempts:
                    number = attempt.number if self._by_path[file.path] is None else self._by_path[file.path] or 0
                    first = next((row.at for row in attempt.rows if row.at is not None), None)
                    if first is not None:
                        found[number] = min(first, found.get(number, first))
        return found if len(found) == self.total else {}
