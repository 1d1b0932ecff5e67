"""How a user runs `trainprobe ready`: in an allocation made from a login node, as the first line
of a batch script, or over ssh.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.gallery.nodes.stand import COUNT, Stand

Way = Literal["salloc", "batch", "ssh"]
WAYS: tuple[Way, ...] = ("salloc", "batch", "ssh")
OUTSIDE: tuple[Way, ...] = ("salloc", "ssh")
KILLED_AFTER_S = 150.0
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Answer:
    """What one call gave. `exit_code` is None where it did not end."""

    exit_code: int | None
    report: Mapping[str, Any]
    said: str
    took_s: float


def words(stand: Stand, folder: Path, budget: str) -> list[str]:
    """What a user types, with the options that only say where the report goes."""
    given = (
        f"--{budget}",
        "--paths",
        str(stand.data),
        "--json",
        str(folder / "report.json"),
        "--case",
        str(folder / "case"),
    )
    return [sys.executable, "-m", "trainprobe", "ready", *given]


def environment(stand: Stand) -> dict[str, str]:
    """A user's environment; nothing in it tells what is planted."""
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ
    }
    ssh = {"TRAINPROBE_SSH": f"ssh -F {stand.ssh_config}", "SLURM_CONF": str(stand.slurm.conf)}
    return {
        **kept,
        **ssh,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "TMPDIR": str(stand.scratch),
    }


def ready(stand: Stand, way: Way, folder: Path, budget: str) -> Answer:
    """Run it in one of the ways and read its report."""
    folder.mkdir(parents=True)
    began = time.monotonic()
    typed = words(stand, folder, budget)
    code, said = (
        _in_batch(stand, folder, typed) if way == "batch" else _from_here(stand, way, typed)
    )
    report = folder / "report.json"
    found: Mapping[str, Any] = (
        json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    )
    return Answer(code, found, said, time.monotonic() - began)


def _from_here(stand: Stand, way: Way, typed: Sequence[str]) -> tuple[int | None, str]:
    argv = (
        ["salloc", "--quiet", f"--nodes={COUNT}", "--cpus-per-task=4", *typed]
        if way == "salloc"
        else [*typed, "--nodes", ",".join(stand.names)]
    )
    try:
        done = subprocess.run(
            argv,
            env=environment(stand),
            cwd=stand.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=KILLED_AFTER_S,
        )
    except subprocess.TimeoutExpired as late:
        return None, _text(late.stdout) + _text(late.stderr)
    return done.returncode, done.stdout + done.stderr


def _text(said: bytes | str | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def _in_batch(stand: Stand, folder: Path, typed: Sequence[str]) -> tuple[int | None, str]:
    """The first line of a job: it runs on the first node. The exit code is written to a file,
    since there is no accounting here.
    """
    ended, output = folder / "exit", folder / "output"
    kept = "".join(
        f"export {name}={shlex.quote(value)}\n" for name, value in environment(stand).items()
    )
    profile = stand.profile / stand.names[0]
    text = (
        f"#!/bin/sh\n{kept}[ ! -f {profile} ] || . {profile}\n{shlex.join(typed)}\necho $? >"
        f" {ended}.part\nmv {ended}.part {ended}\n"
    )
    job = stand.slurm.job(
        text,
        f"--nodes={COUNT}",
        "--ntasks-per-node=1",
        "--cpus-per-task=4",
        "--export=NONE",
        f"--output={output}",
    )
    until = time.monotonic() + KILLED_AFTER_S
    while not ended.exists() and time.monotonic() < until:
        time.sleep(0.1)
    said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    if not ended.exists():
        stand.slurm.run("scancel", "--signal=KILL", str(job))
        return None, said
    return int(ended.read_text(encoding="ascii")), said
