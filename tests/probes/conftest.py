"""Run a probe as its user does: a program in a process of its own, by hand and with an events
file.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROBES = Path(__file__).resolve().parents[2] / "probes"
LEFT_OUT = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PYTHONPATH",
)


@dataclass(frozen=True)
class ProbeRun:
    exit_code: int
    output: str
    events: tuple[Mapping[str, Any], ...]

    def of(self, event: str, **labels: object) -> list[Mapping[str, Any]]:
        """The events of one kind that carry these labels."""
        return [
            one
            for one in self.events
            if one["event"] == event and all(one.get(key) == value for key, value in labels.items())
        ]

    @property
    def answer(self) -> str:
        """The last event's answer; "" where the probe gave none."""
        return str(self.events[-1].get("answer", "")) if self.events else ""


def environment(**more: str) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in LEFT_OUT and not key.startswith("TRAINPROBE_")
    }
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def events_of(path: Path) -> tuple[Mapping[str, Any], ...]:
    return (
        tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
        if path.exists()
        else ()
    )


RunProbe = Callable[..., ProbeRun]
RunRanks = Callable[..., list[ProbeRun]]


@pytest.fixture
def run_probe(tmp_path: Path) -> RunProbe:
    """Run probes/NAME.py ARGV… in an empty folder; `shell` is a command line that comes before
    it, such as a limit.
    """

    def run(
        name: str,
        *argv: str,
        env: Mapping[str, str] | None = None,
        shell: str = "",
        flags: tuple[str, ...] = (),
        cwd: Path | None = None,
    ) -> ProbeRun:
        events = tmp_path / "events.jsonl"
        events.unlink(missing_ok=True)
        folder = cwd or tmp_path / "job"
        folder.mkdir(exist_ok=True)
        command = [sys.executable, *flags, str(PROBES / f"{name}.py"), *argv]
        command = ["/bin/sh", "-c", f'{shell}; exec "$@"', "sh", *command] if shell else command
        done = subprocess.run(
            command,
            env={**environment(TRAINPROBE_EVENTS=str(events)), **(env or {})},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        return ProbeRun(done.returncode, done.stdout + done.stderr, events_of(events))

    return run


@pytest.fixture
def run_ranks(tmp_path: Path) -> RunRanks:
    """Run probes/NAME.py once for each of `ranks` out of a world of `world_size`, all at the
    same time.
    """

    def run(
        name: str, *argv: str, world_size: int = 2, ranks: tuple[int, ...] | None = None
    ) -> list[ProbeRun]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        started = []
        for rank in ranks if ranks is not None else tuple(range(world_size)):
            numbers = {
                "RANK": rank,
                "LOCAL_RANK": rank,
                "WORLD_SIZE": world_size,
                "LOCAL_WORLD_SIZE": world_size,
                "MASTER_PORT": port,
            }
            events, output = tmp_path / f"events.{rank}.jsonl", tmp_path / f"output.{rank}"
            env = environment(
                TRAINPROBE_EVENTS=str(events),
                MASTER_ADDR="127.0.0.1",
                **{key: str(value) for key, value in numbers.items()},
            )
            with output.open("wb") as file:
                child = subprocess.Popen(
                    [sys.executable, str(PROBES / f"{name}.py"), *argv],
                    env=env,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
            started.append((child, output, events))
        done = []
        try:
            for child, output, events in started:
                code = child.wait(timeout=90)
                done.append(ProbeRun(code, output.read_text(), events_of(events)))
        finally:
            for child, _, _ in started:
                child.kill()
        return done

    return run
