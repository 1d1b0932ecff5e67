"""Who among the suspects is in a file call, in which file system, and on which path."""

from __future__ import annotations

import re

from trainprobe.causes.child_processes import ends, states
from trainprobe.causes.scene import Scene
from trainprobe.facts import MainThread, Mount, OpenFile, ProcessState
from trainprobe.stacks.wait_channels import sleeps_in

# What a file call sleeps in (stacks.wait_channels); a pipe is two processes' matter and a terminal
# a person's.
FILE_SYSTEMS = frozenset({"nfs", "fuse", "lustre", "ceph", "disk", "fifo"})
_NO_STORAGE = frozenset({"pipe", "terminal"})
# State D that is no disk's: mm/memcontrol.c (a full memory cgroup), kernel/freezer.c and
# kernel/cgroup/freezer.c (a frozen one).
_NO_FILE = re.compile(r"mem_cgroup|refrigerator|freezer|ptrace_stop|do_exit|vfork")
_PATH = re.compile(r"""['"](/[^'"\s]+)['"]""")
# x86-64 calls (asm/unistd_64.h) whose first argument is the open file: read write pread pwrite
# readv writev fsync fdatasync getdents ftruncate.
_WITH_FD = frozenset({"0", "1", "17", "18", "19", "20", "74", "75", "78", "217", "77"})


def stalled(scene: Scene) -> tuple[MainThread, ...]:
    """Threads at the end of the suspects' waiting that stand in a file call."""
    piped = {state.pid for state in states(scene) if "pipe" in state.wchan or "tty" in state.wchan}
    found = [
        thread
        for thread in ends(scene)
        if thread.leaf == "file-io" and thread.op not in _NO_STORAGE and thread.pid not in piped
    ]
    return tuple(thread for thread in found if thread.moved is not True)


def asleep(scene: Scene) -> tuple[ProcessState, ...]:
    """Processes asleep in a file system, or uninterruptibly in an unknown call without CPU."""
    return tuple(
        state
        for state in states(scene)
        if channel(state) in FILE_SYSTEMS
        or (state.state == "D" and not state.cpu_moved and not elsewhere(state))
    )


def channel(state: ProcessState) -> str:
    """The file system in which the kernel says this process sleeps; else empty."""
    if state.state in ("S", "D"):
        return next((op for leaf, op in _places(state) if leaf == "file-io"), "")
    return ""


def elsewhere(state: ProcessState) -> bool:
    """Does it sleep in something other than a file: a full memory cgroup, a timer, a freezer?"""
    names = (state.wchan, *state.kernel_stack)
    return any(_NO_FILE.search(name) for name in names) or (
        not channel(state) and bool(_places(state))
    )


def dead_mounts(scene: Scene) -> tuple[Mount, ...]:
    """Mounts that do not answer and on which the suspects themselves wait."""
    waiting = {thread.pid for thread in stalled(scene)} | {state.pid for state in asleep(scene)}
    channels = {channel(state) for state in asleep(scene)} - {""}
    paths = (*_named(scene), *(fact.path for fact in _opened(scene, waiting)))
    dead = [mount for mount in scene.of(Mount) if mount.probe == "timed_out"]
    sure = [
        mount
        for mount in dead
        if waiting & set(mount.used_by)
        or any(path.startswith(f"{mount.path.rstrip('/')}/") for path in paths)
    ]
    return tuple(
        sure or [mount for mount in dead if any(name in mount.fstype for name in channels)]
    )


def path_of(scene: Scene) -> str:
    """The dead mount, the path in the line, or the open file of the call; empty if unknown."""
    states_asleep = asleep(scene)
    waiting = {thread.pid for thread in stalled(scene)} | {state.pid for state in states_asleep}
    by_number = {(fact.pid, fact.fd): fact.path for fact in _opened(scene, waiting)}
    in_call = [
        by_number.get((state.pid, _number(state)), "")
        for state in states(scene)
        if state.pid in waiting
    ]
    return next(
        (
            path
            for path in (*(mount.path for mount in dead_mounts(scene)), *_named(scene), *in_call)
            if path
        ),
        "",
    )


def _number(state: ProcessState) -> int | None:
    call, _, rest = state.syscall.partition(" ")
    first = rest.split(" ", 1)[0]
    return int(first, 16) if call in _WITH_FD and first.startswith("0x") else None


def _places(state: ProcessState) -> tuple[tuple[str, str], ...]:
    found = (sleeps_in(name, "") for name in (state.wchan, *state.kernel_stack[:4]))
    return tuple(place for place in found if place is not None)


def _named(scene: Scene) -> tuple[str, ...]:
    return tuple(
        match.group(1)
        for thread in stalled(scene)
        for site in scene.sites(thread.frames[-1:])
        if (match := _PATH.search(site.text))
    )


def _opened(scene: Scene, pids: set[int]) -> tuple[OpenFile, ...]:
    return tuple(fact for fact in scene.of(OpenFile) if fact.pid in pids and fact.kind == "file")
