"""Golden cases of jobs that were attached to, and of dumps: they are started with the programs
of the live gallery.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.gallery.live.kinds import KINDS, Planned
from tests.gallery.live.launching import command, free_port, pid_to_type
from tests.gallery.live.surroundings import HERE, PARTS, Site, clear
from tests.unit.recorder.dumps import real
from tests.unit.recorder.stacks import ELSEWHERE, IN_ALL_REDUCE, py_spy

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S, SETTLE_S, ATTACH_S = 150.0, 9.0, 120.0


@dataclass(frozen=True)
class LiveRecipe:
    """One look at a live job of the gallery, or at dumps. `verdict`, `cause` (empty: none) and
    `ranks` are the truth about it.
    """

    verdict: str
    cause: str
    ranks: tuple[int, ...]
    make: Callable[[Path], Path]


def of_job(
    kind: str, world: int, launch: str, pick: int, form: str = "loud"
) -> Callable[[Path], Path]:
    """Start this kind of the gallery, let it stand for a while, and attach."""

    def make(folder: Path) -> Path:
        site = Site(
            Planned(kind, 0, world, form, launch, pick, seed=2, when=5),
            folder,
            secrets.token_hex(8),
            free_port(),
        )
        try:
            return _attached(site)
        finally:
            site.folder = (
                folder / "nothing more"
            )  # the folder is the caller's, who reads the case from it
            clear(site)

    return make


def _attached(site: Site) -> Path:
    kind = KINDS[site.run.kind]
    site.args += kind.args
    for part in kind.before:
        PARTS[part](site)
    script = site.plant(HERE / "programs" / f"{kind.script}.py")
    log = site.folder / "train.log"
    with log.open("wb") as sink:
        job = subprocess.Popen(
            command(site, script),
            cwd=site.folder,
            env=site.environment(),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    site.undo += [job.wait, job.kill]  # from the last to the first
    until = time.monotonic() + PATIENCE_S
    while not re.search(
        rf"step {site.run.when - 1}\b", log.read_text(encoding="utf-8", errors="replace")
    ):
        if time.monotonic() > until or job.poll() is not None:
            raise RuntimeError(
                "the job did not get ready:"
                f" {log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
            )
        time.sleep(0.2)
    for part in kind.during:
        PARTS[part](site)
    time.sleep(SETTLE_S)
    return trainprobe_in(site.folder, "attach", str(pid_to_type(site, job.pid)), *kind.words)


def of_dumps(folder: Path) -> Path:
    """Explain three dumps of the flight recorder, of which one rank lacks the last collective:
    its stack dump shows it in a function of its own.
    """
    for rank, content in real("missing").items():
        (folder / f"nccl_trace_rank_{rank}").write_bytes(content)
        (folder / f"stack_rank_{rank}.txt").write_text(
            py_spy(500 + rank, ELSEWHERE if rank == 1 else IN_ALL_REDUCE), encoding="utf-8"
        )
    return trainprobe_in(folder, "explain", *sorted(path.name for path in folder.iterdir()))


def trainprobe_in(folder: Path, *words: str) -> Path:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "trainprobe", *words, "--case", "case"]
    subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=ATTACH_S,
        check=False,
    )
    return folder / "case"


LIVE = {
    "attach-lock-held-outside": LiveRecipe(
        "hung", "file-lock-held", (1,), of_job("flock_cache", 2, "torchrun", 1)
    ),
    "attach-worker-stuck": LiveRecipe(
        "hung", "data-worker-stuck", (0,), of_job("worker_poll", 2, "torchrun", 0)
    ),
    "attach-conditional-collective": LiveRecipe(
        "hung", "rank-conditional-collective", (2,), of_job("barrier_in_save", 3, "torchrun", 2)
    ),
    "attach-rank-0-evaluates": LiveRecipe(
        "healthy", "", (), of_job("evaluation_first", 2, "torchrun", 0)
    ),
    "attach-rank-gone": LiveRecipe(
        "hung", "rank-exited-early", (1,), of_job("left_early", 3, "popen", 1)
    ),
    "explain-dumps": LiveRecipe("hung", "rank-stuck", (1,), of_dumps),
}
