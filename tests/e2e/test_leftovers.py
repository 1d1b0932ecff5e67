"""Earlier runs of the user's own script, left behind for real: found, named where they bite,
ended by the printed commands and by nobody else.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.tool import call, environment, shown
from trainprobe.targets.launch import free_port

SCRIPT = Path(__file__).parent / "scripts" / "leaves_orphans.py"


class Place:
    """A folder with the script, whose runs are all ended at the end."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.env = folder, environment(token)
        shutil.copy(SCRIPT, folder / "train.py")
        (folder / "port").write_text(str(free_port()))

    def leave(self, count: int, mib: int, how: str) -> list[int]:
        subprocess.run(
            [sys.executable, "train.py", "--leave", str(count), str(mib), how],
            cwd=self.folder,
            env=self.env,
            check=True,
            timeout=60,
        )
        ends = time.monotonic() + 20
        while len(found := self.alive()) < count and time.monotonic() < ends:
            time.sleep(0.05)
        assert len(found) == count
        time.sleep(0.3)  # until the first of them listens
        return found

    def alive(self) -> list[int]:
        """All processes but our own that stand in the folder."""
        found = []
        for name in os.listdir("/proc"):
            try:
                here = name.isdecimal() and os.readlink(f"/proc/{name}/cwd") == str(self.folder)
            except OSError:
                continue
            if (
                here
                and int(name) != os.getpid()
                and Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
            ):
                found.append(int(name))
        return sorted(found)

    def diagnose(self) -> dict[str, Any]:
        done = call(
            [
                "diagnose",
                "--nproc",
                "1",
                "--only",
                "user_script",
                "--json",
                "out.json",
                "--case",
                "case",
                "--",
                "train.py",
            ],
            self.folder,
            self.env,
        )
        assert done.returncode in (0, 1), shown(done)
        report: dict[str, Any] = json.loads((self.folder / "out.json").read_text())
        shutil.rmtree(self.folder / "case")
        return report


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path.resolve() / "job"
    folder.mkdir()
    made = Place(folder, tmp_path.name)
    yield made
    for _ in range(3):  # a loop may start another one meanwhile
        for pid in made.alive():
            os.kill(pid, signal.SIGKILL)


def type_in(commands: str, place: Place) -> None:
    subprocess.run(["/bin/sh", "-c", commands], cwd=place.folder, check=False, timeout=20)
    ends = time.monotonic() + 10
    while place.alive() and time.monotonic() < ends:
        time.sleep(0.05)


def test_nineteen_orphans_with_the_port_are_named_and_their_end_makes_the_run_healthy(
    place: Place,
) -> None:
    left = place.leave(19, 4, "listen")
    report = place.diagnose()
    first = report["causes"][0]
    assert (report["verdict"], first["id"], first["named"]) == (
        "crashed",
        "leftover-processes",
        True,
    )
    assert sorted(first["pids"]) == left
    assert "19 processes" in first["summary"]
    assert f"port {(place.folder / 'port').read_text()}" in first["summary"]
    assert place.alive() == left, "nothing is ended by the tool"
    type_in(
        "; ".join(
            step for fix in first["fixes"] if fix["risk"] == "disruptive" for step in fix["steps"]
        ),
        place,
    )
    assert place.alive() == []
    assert place.diagnose()["verdict"] == "healthy"


def test_orphans_that_hold_nothing_and_the_loop_that_starts_them_are_a_warning(
    place: Place,
) -> None:
    left = place.leave(3, 1, "idle")
    loop = f"while true; do {sys.executable} train.py --stay; sleep 0.1; done"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", f"setsid sh -c '{loop}' & echo"],
        cwd=place.folder,
        env=place.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    shell.wait(timeout=10)
    time.sleep(0.3)
    report = place.diagnose()
    warning = next(one for one in report["warnings"] if one["check"] == "host.leftovers")
    assert report["verdict"] == "healthy"
    assert set(map(str, left)) < set(warning["fix"].replace(";", " ").split())
    assert "starts it again" in warning["says"] or "started it again" in warning["says"]
    assert warning["fix"].startswith("kill ")
    type_in(warning["fix"], place)
    time.sleep(0.7)
    assert place.alive() == []
