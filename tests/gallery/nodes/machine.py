"""Faults of one host itself, planted in its namespaces and control groups only: mounts, clock,
limits, quota, versions, names.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.hosts import Host
from tests.gallery.nodes.stand import CannotPlantError, Stand

DEAD_MOUNT = Path(__file__).parents[2] / "programs" / "dead_mount.py"
CLOCK = Path(__file__).with_name("clock.c")
PERIOD_US = 100_000


def done(host: Host, *words: str) -> None:
    """Run it on the host. Raises CannotPlantError with what it said where it fails."""
    ran = host.run(*words)
    if ran.returncode != 0:
        raise CannotPlantError(f"{' '.join(words)}: {ran.stderr.strip()[:200]}")


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def over(host: Host, file: Path, text: str, folder: Path) -> Iterator[None]:
    """Let the host alone read this text in that file."""
    own = folder / f"{host.name}-{file.name}"
    own.write_text(text, encoding="utf-8")
    done(host, "mount", "--bind", str(own), str(file))
    try:
        yield
    finally:
        host.run("umount", "--lazy", str(file))


@contextlib.contextmanager
def shared_memory(host: Host, size: str, before: str = "1g") -> Iterator[None]:
    done(host, "mount", "-o", f"remount,size={size}", "/dev/shm")
    try:
        yield
    finally:
        host.run("mount", "-o", f"remount,size={before}", "/dev/shm")


@contextlib.contextmanager
def limit(stand: Stand, host: Host, *limits: str) -> Iterator[None]:
    """Lower limits of the daemons that start what runs here, and so of all that they start."""
    stand.restart(host, *limits)
    try:
        yield
    finally:
        stand.restart(host)


@contextlib.contextmanager
def exported(stand: Stand, host: Host, **variables: str) -> Iterator[None]:
    """Let a profile of the host set these."""
    stand.restart(host, **variables)
    try:
        yield
    finally:
        stand.restart(host)


@contextlib.contextmanager
def unmounted(stand: Stand, host: Host) -> Iterator[None]:
    """The data folder is not mounted: it is an empty folder of the host's own disk."""
    aside = stand.folder / "aside"
    aside.mkdir(exist_ok=True)
    done(host, "mount", "--move", str(stand.data), str(aside))
    try:
        yield
    finally:
        host.run("mount", "--move", str(aside), str(stand.data))


@contextlib.contextmanager
def mounted_over(stand: Stand, host: Host, *words: str) -> Iterator[None]:
    """Mount something else over the data folder, such as `-t tmpfs other`."""
    done(host, "mount", *words, str(stand.data))
    try:
        yield
    finally:
        host.run("umount", "--lazy", str(stand.data))


@contextlib.contextmanager
def read_only(stand: Stand, host: Host) -> Iterator[None]:
    done(host, "mount", "--bind", str(stand.data), str(stand.data))
    done(host, "mount", "-o", "remount,bind,ro", str(stand.data))
    try:
        yield
    finally:
        host.run("umount", "--lazy", str(stand.data))


@contextlib.contextmanager
def hung_mount(stand: Stand, host: Host, how: str) -> Iterator[None]:
    """Its server takes requests and never answers (`asleep`), or does not even take them
    (`deaf`).
    """
    if not Path("/dev/fuse").exists():
        raise CannotPlantError("no /dev/fuse")
    said = host.folder / "dead_mount.out"
    said.unlink(missing_ok=True)
    server = host.start(sys.executable, str(DEAD_MOUNT), str(stand.data), how, log=said.name)
    try:
        until = time.monotonic() + 10
        while b"ready" not in said.read_bytes():
            if time.monotonic() > until or server.poll() is not None:
                raise CannotPlantError(
                    f"no mount that hangs: {said.read_text(encoding='utf-8')[:200]}"
                )
            time.sleep(0.05)
        yield
    finally:
        for pid in host.pids():  # not nsenter's alone; the mount ends with its server
            with contextlib.suppress(OSError):
                if DEAD_MOUNT.name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    kill(pid)
        server.wait(10)
        host.services.remove(server)
        host.run("umount", "--lazy", "--types", "fuse", str(stand.data))


@contextlib.contextmanager
def names(stand: Stand, host: Host, text: str) -> Iterator[None]:
    """Give the host another table of names."""
    with over(host, Path("/etc/hosts"), text, stand.folder):
        yield


def table_of_names(stand: Stand, **changed: str) -> str:
    """The table with the addresses of these names changed, `""` to leave one out."""
    rows = {host.name: host.address for host in stand.hosts} | changed
    return "127.0.0.1 localhost\n" + "".join(
        f"{address} {name}\n" for name, address in rows.items() if address
    )


@contextlib.contextmanager
def wrong_clock(stand: Stand, host: Host, milliseconds: int) -> Iterator[None]:
    """Every program that starts on the host reads a clock that is wrong by so much. Nothing of
    it is in any environment.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise CannotPlantError("no C compiler")
    library = stand.folder / f"clock{milliseconds}.so"
    if not library.exists():
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                "-O1",
                f"-DOFFSET_MS=({milliseconds}LL)",
                "-o",
                str(library),
                str(CLOCK),
                "-ldl",
            ],
            check=True,
            timeout=60,
        )
    parts = {
        name: stand.folder / f"etc-{host.name}-{milliseconds}" / name for name in ("upper", "work")
    }
    for part in parts.values():
        part.mkdir(parents=True, exist_ok=True)
    (parts["upper"] / "ld.so.preload").write_text(f"{library}\n", encoding="utf-8")
    before = host.run("cat", "/etc/hosts").stdout
    resolver = host.run("cat", "/etc/resolv.conf").stdout
    done(
        host,
        "mount",
        "-t",
        "overlay",
        "overlay",
        "-o",
        f"lowerdir=/etc,upperdir={parts['upper']},workdir={parts['work']}",
        "/etc",
    )
    try:
        with (
            over(host, Path("/etc/hosts"), before, stand.folder),
            over(host, Path("/etc/resolv.conf"), resolver, stand.folder),
        ):
            yield
    finally:
        host.run("umount", "--lazy", "/etc")
        shutil.rmtree(stand.folder / f"etc-{host.name}-{milliseconds}", ignore_errors=True)


@contextlib.contextmanager
def quota(host: Host, share: float) -> Iterator[None]:
    """All that runs on the host may use so many CPUs; a value below 1 is a part of one."""
    parent = Path("/sys/fs/cgroup/cpu")
    if not (parent / "cpu.cfs_quota_us").exists() and not (parent / "cgroup.procs").exists():
        raise CannotPlantError("no cpu controller of control groups version 1")
    own = parent / f"planted-{host.bridge.lane}-{host.name}"
    own.mkdir(exist_ok=True)
    try:
        (own / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
        (own / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD_US)), encoding="ascii")
        _moved(host.pids(), own)
        yield
    finally:
        for _ in range(50):
            _moved(
                [int(pid) for pid in (own / "cgroup.procs").read_text(encoding="ascii").split()],
                parent,
            )
            with contextlib.suppress(OSError):
                own.rmdir()
                break
            time.sleep(0.1)


def _moved(pids: list[int], folder: Path) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")


@contextlib.contextmanager
def another_version(stand: Stand, host: Host, package: str, version: str) -> Iterator[None]:
    """The host's own Python finds another version of a package, in its metadata and in the
    module.
    """
    try:
        there = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        raise CannotPlantError(f"{package} is not installed") from None
    now = there.version
    told = [
        Path(str(there.locate_file(file)))
        for file in there.files or ()
        if str(file).endswith((".dist-info/METADATA", f"{package}/version.py"))
    ]
    with contextlib.ExitStack() as stack:
        for file in told:
            text = file.read_text(encoding="utf-8").replace(now, version)
            stack.enter_context(over(host, file, text, stand.folder))
        yield


@contextlib.contextmanager
def full_disk(host: Host, folder: Path, size: str) -> Iterator[None]:
    """Mount a disk of this size over a folder and fill it."""
    done(host, "mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "small-disk", str(folder))
    try:
        host.run("dd", "if=/dev/zero", f"of={folder}/full", "bs=64k")
        yield
    finally:
        host.run("umount", "--lazy", str(folder))


@contextlib.contextmanager
def frozen(host: Host) -> Iterator[None]:
    host.stop()
    try:
        yield
    finally:
        host.resume()
