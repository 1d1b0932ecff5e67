"""Nodes whose disks are full or cannot be written, in the slots of administrators; and an old
Python.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster import sites
from tests.cluster.hosts import Host
from tests.gallery.nodes.once_wrong.situation import (
    Look,
    Seen,
    Situation,
    Wrongs,
    called,
    ends,
    users,
    with_report,
)
from tests.gallery.nodes.stand import Stand
from tests.gallery.nodes.ways import ROOT

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
PYTHON_36 = "TRAINPROBE_PYTHON_36"


def single_file(folder: Path) -> Path:
    """The tool as one file."""
    file = folder / "trainprobe.pyz"
    argv = [sys.executable, "-m", "trainprobe", "bundle-tool", "-o", str(file)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return file


def read_only(folder: Path, *argv: str) -> tuple[str, ...]:
    """The command, run where the root disk has turned read-only, though fstab mounts it to be
    written: in mounts of its own, since the daemons of the host hold files open for writing.
    """
    table = folder / "fstab"
    table.write_text("/dev/vda / ext4 rw,errors=remount-ro 0 1\n", encoding="ascii")
    made = (
        f"mount --bind {table} /etc/fstab && mount -o remount,bind,ro /etc/fstab"
        ' && mount -o remount,bind,ro / && exec "$@"'
    )
    return ("unshare", "--mount", "sh", "-c", made, "sh", *argv)


@contextlib.contextmanager
def full(host: Host, *places: str) -> Iterator[None]:
    """No room in these folders."""
    try:
        for place in places:
            host.run("mount", "-t", "tmpfs", "-o", "size=64k", "full", place)
            host.run("dd", "if=/dev/zero", f"of={place}/filler", "bs=1k", "count=128")
        yield
    finally:
        for place in places:
            host.run("umount", "--lazy", place)


def slot(host: Host, *argv: str, cwd: Path | None = None) -> Look:
    """As slurmd calls it: hardly any environment."""

    def look(folder: Path) -> Seen:
        typed = host.argv(
            "env", "-i", f"--chdir={cwd or '/'}", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *argv
        )
        return called(typed, folder, os.environ)

    return look


def prolog(folder: Path, log: str) -> str:
    return str(sites.example("prolog.sh", folder, TRAINPROBE=sites.installed(folder), LOG=log))


@contextlib.contextmanager
def prolog_read_only(stand: Stand, folder: Path) -> Iterator[Look]:
    script = prolog(folder, str(folder / "log"))
    yield slot(stand.hosts[1], *read_only(folder, script))


@contextlib.contextmanager
def prolog_full(stand: Stand, folder: Path) -> Iterator[Look]:
    script = prolog(folder, "/dev/stderr")
    with full(stand.hosts[1], *TEMPORARY):
        yield slot(stand.hosts[1], script)


@contextlib.contextmanager
def prolog_without_log(stand: Stand, folder: Path) -> Iterator[Look]:
    """The log's folder is not there, and a mount of fstab is missing."""
    point = folder / "data"
    point.mkdir()
    script = prolog(folder, "/no/such/folder/log")
    sites.without_its_mount(stand.hosts[1], folder, point)
    with sites.ruled(stand.hosts[1:2], folder, f"paths: [{point}]\n"):
        try:
            yield slot(stand.hosts[1], script)
        finally:
            sites.with_its_mount(stand.hosts[1])


def _nagios(argv: Sequence[str]) -> tuple[str, ...]:
    return (*argv, "ready", "--slot", "healthcheck", "--format", "nagios")


@contextlib.contextmanager
def nagios_read_only(stand: Stand, folder: Path) -> Iterator[Look]:
    argv = _nagios([str(sites.installed(folder))])
    yield slot(stand.hosts[1], *read_only(folder, *argv))


@contextlib.contextmanager
def single_nagios_nowhere(stand: Stand, folder: Path) -> Iterator[Look]:
    """The single file on a node on which no folder can be written."""
    argv = _nagios([sys.executable, str(single_file(folder))])
    with full(stand.hosts[1], *TEMPORARY):
        yield slot(stand.hosts[1], *read_only(folder, *argv))


@contextlib.contextmanager
def single_full(stand: Stand, folder: Path) -> Iterator[Look]:
    """The single file where only the working folder has room."""
    work = folder / "work"
    work.mkdir()
    argv = (sys.executable, str(single_file(folder)), "ready", "--slot", "prolog")
    with full(stand.hosts[1], *TEMPORARY):
        yield slot(stand.hosts[1], *argv, cwd=work)


def python_36() -> str:
    found = sorted(glob.glob("/root/.pyenv/versions/3.6.*/bin/python3.6"))
    return os.environ.get(PYTHON_36) or (found[-1] if found else "")


def no_python_36() -> str:
    return "" if python_36() else f"{PYTHON_36} names no Python 3.6"


@contextlib.contextmanager
def old_python_single(stand: Stand, folder: Path) -> Iterator[Look]:
    file = single_file(folder)
    yield slot(stand.hosts[1], python_36(), str(file), "ready", "--slot", "prolog")


@contextlib.contextmanager
def old_python_checkout(stand: Stand, _folder: Path) -> Iterator[Look]:
    """Installed into the old Python's path."""
    argv = ("env", f"PYTHONPATH={ROOT}", python_36(), "-m", "trainprobe", "ready")
    yield slot(stand.hosts[1], *argv)


@contextlib.contextmanager
def old_python_sent(stand: Stand, _folder: Path) -> Iterator[Look]:
    """`attach` sends the tool to nodes that have only this."""

    def look(own: Path) -> Seen:
        words = ("attach", "--hosts", "node1,node2", "--bundle", "--node-python", python_36())
        argv = [sys.executable, "-m", "trainprobe", *words, *with_report(own)]
        return called(argv, own, users(stand))

    yield look


def in_a_sentence(*codes: int) -> Wrongs:
    """One of these codes, a word about Python 3.9, and nothing of a traceback."""

    def wrongs(seen: Seen) -> list[str]:
        never = ("Traceback", "SyntaxError", "HEALTHY")
        said = ends(*codes, words=("3.9",), never=never)(seen)
        lines = [line for line in seen.said.splitlines() if line.strip() and " of " not in line[:9]]
        return said + ([f"{len(lines)} lines"] if len(lines) > 3 and not seen.report else [])

    return wrongs


def _critical(seen: Seen) -> list[str]:
    line = seen.said.strip()
    said = ends(2)(seen)
    return said + ([] if re.search(r"CRITICAL", line) else ["nagios says nothing of CRITICAL"])


SLOTS = (
    Situation(
        "prolog: read-only root",
        "the published prolog.sh on a read-only root, its log there too",
        "passes; the check never runs",
        "exit 1 (the node is drained), `fs.system` named",
        prolog_read_only,
        ends(1, words=("fs.system",)),
    ),
    Situation(
        "prolog: full temp folders",
        "the published prolog.sh with full temp folders",
        "passes",
        "exit 1, `fs.system` named",
        prolog_full,
        ends(1, words=("fs.system",)),
    ),
    Situation(
        "prolog: unwritable LOG",
        "the published prolog.sh, whose LOG cannot be written, beside a missing mount",
        "the check never runs",
        "exit 1, `fs.mounts` named",
        prolog_without_log,
        ends(1, words=("fs.mounts",)),
    ),
    Situation(
        "nagios: read-only root",
        "`--format nagios` on a read-only root",
        "prints nothing and exits 0",
        "exit 2, CRITICAL",
        nagios_read_only,
        _critical,
    ),
    Situation(
        "single file: nowhere to unpack",
        "the single file with `--format nagios` where no folder can be written",
        "a traceback",
        "exit 3, UNKNOWN",
        single_nagios_nowhere,
        ends(3, words=("UNKNOWN",)),
    ),
    Situation(
        "single file: full temp folders",
        "the single file in a prolog where only the working folder has room",
        "a traceback",
        "exit 10, `fs.system` named",
        single_full,
        ends(10, words=("fs.system",)),
    ),
    Situation(
        "Python 3.6: single file",
        "Python 3.6 on the node (RHEL 8), the single file",
        "SyntaxError",
        "one plain sentence",
        old_python_single,
        in_a_sentence(1, 2, 3),
        no_python_36,
    ),
    Situation(
        "Python 3.6: installed",
        "Python 3.6 on the node, the tool on its path",
        "SyntaxError",
        "one plain sentence",
        old_python_checkout,
        in_a_sentence(1, 2, 3),
        no_python_36,
    ),
    Situation(
        "Python 3.6: attach --bundle",
        "Python 3.6 on the nodes to which `attach` sends the tool",
        "SyntaxError",
        "one plain sentence, not healthy",
        old_python_sent,
        in_a_sentence(1, 2, 3),
        no_python_36,
    ),
)
