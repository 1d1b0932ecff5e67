"""Have the job looked at, as `trainprobe attach` does it: by that very command, in a process of its
own. What it takes of memory goes with it, and whatever happens to it, the supervisor goes on.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.system.run import run

# On a crowded machine samples take long, and nobody waits for a look at the pace.
PACE_S = 25.0
LOOK_S = 60.0  # the command itself takes 15 s at most, on a machine that has time for it
TEXT_CAP_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Look:
    """What a look said. `verdict` is empty where it said nothing, and `text` then is why.

    `report` is that of `--json`, `text` the report for people, `case` the folder of the evidence.
    """

    verdict: str
    conclusive: bool = False
    says: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    case: str = ""
    took_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def works(self) -> bool:
        """Did it see a rank that does something, and not only some that have not waited long?"""
        return any(one.get("state") in ("computing", "spinning") for one in self._ranks)

    @property
    def open_s(self) -> float | None:
        """For how long the latest wait that may end by itself has lasted: a lock, an answer or a
        file may come, and a stopped rank may be continued. It is inf where nobody knows, and None
        where ranks wait for each other, or for one that is gone: that does not end.
        """
        if self._ranks and not self._on_their_own:
            return None
        known = [one.get("since_s") for one in self._on_their_own]
        return min((float(one) for one in known if isinstance(one, (int, float))), default=math.inf)

    @property
    def own_waits(self) -> Collection[int]:
        """The pids of ranks that wait for no rank, but for something else."""
        return {
            int(one["pid"])
            for one in self._on_their_own
            if one.get("pid") and one.get("state") == "waiting"
        }

    @property
    def _on_their_own(self) -> Sequence[Mapping[str, Any]]:
        return [
            one
            for one in self._ranks
            if one.get("state") not in ("exited", "crashed") and not one.get("waits_for")
        ]

    @property
    def _ranks(self) -> Sequence[Mapping[str, Any]]:
        world = self.report.get("world")
        ranks = world.get("ranks") if isinstance(world, Mapping) else None
        return [one for one in ranks or () if isinstance(one, Mapping)]


class Looking:
    """A look under way, in a thread. `done` turns into the look; `finished` is called then.
    `given_up` ends it before.
    """

    def __init__(
        self,
        pid: int,
        case: str,
        *,
        watched: bool,
        ended: Callable[[], bool],
        finished: Callable[[], object],
    ) -> None:
        self.done: Look | None = None
        self.given_up = False
        self._watched, self._ended, self._finished = watched, ended, finished
        self._thread = threading.Thread(
            target=self._look, args=(pid, case), name="trainprobe-look", daemon=True
        )
        self._thread.start()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _over(self) -> bool:
        return self.given_up or self._ended()

    def _look(self, pid: int, case: str) -> None:
        try:
            self.done = look(pid, case, self._over, watched=self._watched)
        except Exception as error:  # noqa: BLE001 - a look that fails must not end the supervisor
            self.done = Look("", text=f"{type(error).__name__}: {error}", case=case)
        self._finished()


def look(
    pid: int, case: str, ended: Callable[[], bool] = lambda: False, *, watched: bool = False
) -> Look:
    """Look at the job of `pid` and return what was seen. `watched`: the caller sees whether a pause
    goes on, so the look need not wait for that, nor for who is late.
    """
    began, before = time.monotonic(), _children_cpu_s()
    ran = run(
        [
            *own_command(),
            *("attach", str(pid), "--case", case, "--json", f"{case}.json"),
            *(["--watched"] if watched else ["--timeout", f"{PACE_S:g}"]),
        ],
        timeout_s=LOOK_S,
        given_up=ended,
        output_cap_bytes=TEXT_CAP_BYTES,
        env={**os.environ, "NO_COLOR": "1"},
    )
    took_s, cpu_s = time.monotonic() - began, _children_cpu_s() - before
    report: Mapping[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        with open(f"{case}.json", encoding="utf-8") as file:
            report = json.load(file)
        os.replace(f"{case}.json", os.path.join(case, "report.json"))
    if not report:
        said = ran.stderr.decode("utf-8", "replace").strip()
        return Look("", text=said or ran.ended.reason, case=case, took_s=took_s, cpu_s=cpu_s)
    return Look(
        verdict=str(report.get("verdict") or ""),
        conclusive=report.get("conclusive") is True,
        says=str(report.get("says") or ""),
        report=report,
        text=ran.stdout.decode("utf-8", "replace"),
        case=case,
        took_s=took_s,
        cpu_s=cpu_s,
    )


def own_command() -> list[str]:
    """Start this very program again, without the current folder on its path: a file there may be
    called like a module of Python.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = (
        f"import sys; sys.path[:] = [*filter(None, sys.path), {package!r}];"
        " sys.argv[0] = 'trainprobe'; from trainprobe.cli import main; main()"
    )
    return [sys.executable, "-c", code]


def _children_cpu_s() -> float:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime
