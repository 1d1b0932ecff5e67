"""A site for tests: the published examples as SLURM's own programs, and what must not be called
there.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cluster.hosts import Host

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TORCHRUN = 'echo "torchrun on $(hostname) $*"\n'
ASKS_SLURM = ("scontrol", "squeue", "srun", "sinfo", "sbatch", "sacct")


def installed(folder: Path) -> Path:
    """Return a `trainprobe` that runs this checkout, needs no PATH, and counts its runs in
    `runs`.
    """
    path = folder / "trainprobe"
    _program(
        path,
        f'echo "$*" >>{folder}/runs\nPYTHONPATH={ROOT} exec {sys.executable} -m trainprobe "$@"\n',
    )
    return path


def example(name: str, folder: Path, **values: object) -> Path:
    """Return a copy of a published example in which these variables have other values, and
    nothing else is changed.
    """
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    for variable, value in values.items():
        text, count = re.subn(rf"^{variable}=\S*", f"{variable}={value}", text, flags=re.MULTILINE)
        assert count == 1, f"{name} sets {variable} {count} times"
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def batch_script(folder: Path, nodes: int = 1) -> Path:
    """Return a copy of the published batch script for so many small nodes."""
    text = (EXAMPLES / "job.sbatch").read_text(encoding="utf-8")
    for line, smaller in (
        ("--nodes=4\n", f"--nodes={nodes}\n"),
        ("--cpus-per-task=8\n", "--cpus-per-task=1\n"),
    ):
        assert text.count(line) == 1
        text = text.replace(line, smaller)
    path = folder / "job.sbatch"
    path.write_text(text, encoding="utf-8")
    return path


def answering(folder: Path) -> None:
    """Put programs there that stand in for the two of the batch script: `trainprobe` ends with
    ANSWER, 10 on node1 alone; `torchrun` says that it runs.
    """
    programs = {
        "trainprobe": (
            'for file; do :; done\n[ "$ANSWER" != 10 ] || [ "$(hostname)" = node1 ] || exit 0\n['
            ' "$ANSWER" != 10 ] || hostname >"$file"\nexit "$ANSWER"\n'
        ),
        "torchrun": TORCHRUN,
    }
    for name, text in programs.items():
        _program(folder / name, text)


def ready_for_real(folder: Path) -> None:
    """Put this checkout's own `trainprobe` there, and a `torchrun` that says that it runs."""
    installed(folder)
    _program(folder / "torchrun", TORCHRUN)


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


def poisoned(hosts: Sequence[Host], folder: Path) -> Path:
    """On these hosts every command that asks SLURM says so in the returned file, and fails."""
    calls = folder / "calls"
    calls.touch()
    poison = folder / "poison"
    poison.write_text(f'#!/bin/sh\necho "$0 $*" >>{calls}\nexit 1\n', encoding="utf-8")
    poison.chmod(0o755)
    for host in hosts:
        for name in ASKS_SLURM:
            assert host.run("mount", "--bind", str(poison), f"/usr/bin/{name}").returncode == 0
    return calls


def unpoisoned(hosts: Sequence[Host]) -> None:
    for host in hosts:
        for name in ASKS_SLURM:
            host.run("umount", f"/usr/bin/{name}")


@contextlib.contextmanager
def ruled(hosts: Sequence[Host], folder: Path, rules: str) -> Iterator[None]:
    """On these hosts /etc/trainprobe/site.yaml holds these rules."""
    own = folder / "etc"
    own.mkdir(mode=0o755)
    (own / "site.yaml").write_text(rules, encoding="utf-8")
    place = Path(
        "/etc/trainprobe"
    )  # all hosts share the root disk, so that the mount point has to be there
    made = not place.exists()
    place.mkdir(exist_ok=True)
    try:
        for host in hosts:
            assert host.run("mount", "--bind", str(own), str(place)).returncode == 0
        yield
    finally:
        for host in hosts:
            host.run("umount", str(place))
        if made:
            place.rmdir()


def without_its_mount(host: Host, folder: Path, point: Path) -> None:
    """Plant a fault: its fstab plans a file system of a server there, and nothing is mounted."""
    table = folder / "fstab"
    table.write_text(f"server:/data {point} nfs4 defaults 0 0\n", encoding="utf-8")
    assert host.run("mount", "--bind", str(table), "/etc/fstab").returncode == 0


def with_its_mount(host: Host) -> None:
    host.run("umount", "/etc/fstab")


def of_ours(host: Host) -> list[str]:
    """The command lines of what runs on a host that is trainprobe's."""
    found = []
    for pid in host.pids():
        try:
            line = (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
        except OSError:
            continue
        if "trainprobe" in line or f"{ROOT}/probes" in line:
            found.append(line.strip())
    return found
