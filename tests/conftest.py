"""Fixtures for tests that start the real tool: a runner, a memory cgroup, and the check that
nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SOAK = ROOT / "tests" / "soak.txt"
LIVE = ("attach/", "e2e/", "run/", "ladder/", "runner/", "gallery/", "probes/", "unit/collect/")
# in the environment of all that a test starts, so that leftovers can be told from other people's
# processes
TOKEN = "TRAINPROBE_TEST_TOKEN"


def pytest_configure() -> None:
    """A shell starts what it puts in the background with Ctrl-C ignored, and all children of that
    ignore it too; tests that interrupt something would wait for ever. On a terminal that shows
    neither colour nor a line anew, there would be none to look at. How fast examples are drawn says
    how busy the machine is, and nothing of the code.
    """
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        os.environ["TERM"] = "xterm"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start ranks take seconds and come first, so that the workers of `make test` end
    at about the same time. Those that tests/soak.txt lists are left to `make soak`.
    """
    soak = set(SOAK.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in soak:
            item.add_marker(pytest.mark.soak)
    items.sort(key=lambda item: item.get_closest_marker("torch") is None)
    for item in items:
        # What is tested there is told by real processes, whose pace a busy machine decides: one
        # that fails is tried once more, and the summary says so (RERUN). A fault of the tool's own
        # fails twice.
        if item.get_closest_marker("torch") is not None or item.path.relative_to(
            ROOT / "tests"
        ).as_posix().startswith(LIVE):
            item.add_marker(pytest.mark.flaky(reruns=1))


@dataclass(frozen=True)
class ToolRun:
    """What one call of the tool gave. `report` is its `--json` report, `{}` where it wrote none."""

    exit_code: int
    stdout: str
    stderr: str
    took_s: float
    report: Mapping[str, Any]
    folder: Path

    @property
    def first_cause(self) -> Mapping[str, Any]:
        causes: list[Mapping[str, Any]] = self.report.get("causes") or [{}]
        return causes[0]

    def __str__(self) -> str:
        """What a failed assertion shows."""
        return (
            f"exit {self.exit_code} after {self.took_s:.1f} s\n---"
            f" stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-3000:]}"
        )


@cache
def python_path() -> dict[str, str]:
    """The PYTHONPATH that a child needs to find this trainprobe; nothing where it is installed."""
    probe = subprocess.run(
        [sys.executable, "-c", "import trainprobe"], cwd="/", capture_output=True, check=False
    )
    return {"PYTHONPATH": str(ROOT)} if probe.returncode else {}


def processes_with(token: str) -> dict[int, str]:
    """Live processes that carry the token in their environment: pid to command line."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environ = Path("/proc", entry, "environ").read_bytes()
            if token.encode() in environ:
                found[int(entry)] = (
                    Path("/proc", entry, "cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode(errors="replace")
                    .strip()
                )
        except OSError:
            continue  # it has ended meanwhile, or it is not ours to read
    return {
        pid: command for pid, command in found.items() if command
    }  # a zombie has no command line


def end(pids: Sequence[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue


@pytest.fixture
def job_folder() -> Iterator[Path]:
    """A folder whose name says nothing about the test: neither labels nor paths may help the
    tool.
    """
    folder = Path(tempfile.mkdtemp(prefix="job-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def token() -> Iterator[str]:
    """A mark for the environment of all that the test starts. Fails the test when a process with
    it is left two seconds after its end.
    """
    mark = uuid.uuid4().hex
    yield mark
    ends = time.monotonic() + 2.0
    left = processes_with(mark)
    while left and time.monotonic() < ends:
        time.sleep(0.05)
        left = processes_with(mark)
    end(list(left))
    assert not left, f"left behind: {left}"


RunTool = Callable[..., ToolRun]


@pytest.fixture
def run_tool(token: str, job_folder: Path) -> RunTool:
    """Run `python -m trainprobe ARGV…` in a process of its own and return a ToolRun.

    A call that has `diagnose` gets `--case` and `--json` in the job's folder unless it names them.
    `cgroup` is a folder of the cgroup file system to join, `nofile` a limit for open files; both
    hold for the tool and its children. A tool that is not back within `timeout_s` is killed and
    fails the test.
    """

    def run(
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = 120.0,
        cgroup: Path | None = None,
        nofile: int | None = None,
    ) -> ToolRun:
        json_file = job_folder / "report.json"
        words = list(argv)
        if "diagnose" in words:
            extra = [] if "--case" in words else ["--case", str(job_folder / "case")]
            extra += [] if "--json" in words else ["--json", str(json_file)]
            place = words.index("diagnose") + 1
            words[place:place] = extra
        join = "" if cgroup is None else f'echo $$ > "{cgroup}/cgroup.procs" || exit 99; '
        limit = "" if nofile is None else f"ulimit -n {nofile}; "
        command = [
            "/bin/sh",
            "-c",
            f'{join}{limit}exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "trainprobe",
            *words,
        ]
        environment = {**os.environ, "NO_COLOR": "1", TOKEN: token, **python_path(), **(env or {})}
        began = time.monotonic()
        with (
            (job_folder / "stdout").open("wb") as stdout,
            (job_folder / "stderr").open("wb") as stderr,
        ):
            process = subprocess.Popen(
                command,
                cwd=cwd or job_folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
            try:
                exit_code = process.wait(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                end([process.pid, *processes_with(token)])
                process.wait()
                exit_code = -1
        took_s = time.monotonic() - began
        out, err = (
            (job_folder / name).read_text(errors="replace") for name in ("stdout", "stderr")
        )
        report = json.loads(json_file.read_text()) if json_file.exists() else {}
        result = ToolRun(exit_code, out, err, took_s, report, job_folder)
        assert exit_code != -1, f"the tool did not come back within {timeout_s} s\n{result}"
        return result

    return run


MakeCgroup = Callable[[int], Path]


@pytest.fixture
def memory_cgroup() -> Iterator[MakeCgroup]:
    """Make a memory cgroup with a limit in bytes below our own, version 1 or 2; skips with the
    reason where that cannot be done.
    """
    made: list[Path] = []

    def make(limit_bytes: int) -> Path:
        memberships = dict(
            line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines()
        )
        name = f"trainprobe-test-{os.getpid()}-{len(made)}"
        version_1 = Path("/sys/fs/cgroup/memory")
        if "memory" in memberships and version_1.is_dir():
            folder, limit_file = (
                version_1 / memberships["memory"].lstrip("/") / name,
                "memory.limit_in_bytes",
            )
        else:
            parent = Path("/sys/fs/cgroup") / memberships.get("", "/").lstrip("/")
            folder, limit_file = parent / name, "memory.max"
        try:
            folder.mkdir(parents=False)
            made.append(folder)
            if limit_file == "memory.max" and not (folder / limit_file).exists():
                (folder.parent / "cgroup.subtree_control").write_text("+memory")
            (folder / limit_file).write_text(str(limit_bytes))
        except OSError as error:
            pytest.skip(f"no memory cgroup can be made here: {error}")
        return folder

    yield make
    for folder in made:
        ends = time.monotonic() + 5.0
        while folder.is_dir() and time.monotonic() < ends:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.05)
        assert not folder.is_dir(), f"{folder} still has processes"
