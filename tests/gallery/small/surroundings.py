"""What a story needs around it: a memory cgroup, an earlier run that was left behind."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.conftest import TOKEN, end, processes_with

MIB = 2**20


class CannotMakeError(Exception):
    """These surroundings cannot be had here; the message is the reason."""


@contextlib.contextmanager
def memory_cgroup(limit_mib: int | None) -> Iterator[Path | None]:
    """Make a memory cgroup below our own, of version 1 or 2, and remove it afterwards. Raises
    CannotMakeError.
    """
    if limit_mib is None:
        yield None
        return
    memberships = dict(
        line.split(":", 2)[1:]
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    )
    version_1 = Path("/sys/fs/cgroup/memory")
    old = "memory" in memberships and version_1.is_dir()
    parent = (
        version_1 / memberships["memory"].lstrip("/")
        if old
        else Path("/sys/fs/cgroup") / memberships.get("", "/").lstrip("/")
    )
    folder = parent / f"job-{uuid.uuid4().hex[:12]}"
    try:
        folder.mkdir()
        if not old and not (folder / "memory.max").exists():
            (parent / "cgroup.subtree_control").write_text("+memory", encoding="utf-8")
        (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(
            str(limit_mib * MIB), encoding="utf-8"
        )
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise CannotMakeError(f"no memory cgroup can be made here: {error.strerror}") from None
    try:
        yield folder
    finally:
        ends = time.monotonic() + 10.0
        while folder.is_dir() and time.monotonic() < ends:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.1)


@contextlib.contextmanager
def earlier_run(
    words: Sequence[str], count: int, folder: Path, environment: Mapping[str, str]
) -> Iterator[frozenset[int]]:
    """Start an earlier run, wait until it trains, kill its launcher, and yield the `count`
    processes that are left. Ends them.
    """
    if not words:
        yield frozenset()
        return
    mark = uuid.uuid4().hex
    said = folder / "earlier.log"
    with said.open("wb") as log:
        launcher = subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, TOKEN: mark},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        ends = time.monotonic() + 240.0
        while "epoch 1 " not in said.read_text(encoding="utf-8", errors="replace"):
            if time.monotonic() > ends or launcher.poll() is not None:
                raise CannotMakeError("the earlier run did not come as far as its second epoch")
            time.sleep(0.2)
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        left = frozenset(processes_with(mark))
        if len(left) != count:
            raise CannotMakeError(f"{len(left)} processes are left in place of {count}")
        yield left
    finally:
        end([launcher.pid] if launcher.poll() is None else [])
        end(list(processes_with(mark)))


def end_as_told(report: Mapping[str, object], ours: frozenset[int]) -> bool:
    """Type the first `kill` of the first cause's fixes. It is typed only where all that it ends
    was started by us; False otherwise.
    """
    causes = report.get("causes")
    fixes = causes[0].get("fixes", []) if isinstance(causes, list) and causes else []
    for step in (step for one in fixes for step in one["steps"]):
        words = shlex.split(step.split("   ")[0])
        pids = {int(word) for word in words[1:] if word.isdigit()}
        if words[:1] == ["kill"] and pids and pids <= ours:
            subprocess.run(words, check=False)
            ends = time.monotonic() + 15.0
            while time.monotonic() < ends and any(os.path.exists(f"/proc/{pid}") for pid in ours):
                time.sleep(0.1)
            return not any(os.path.exists(f"/proc/{pid}") for pid in ours)
    return False
