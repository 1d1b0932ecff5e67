"""`pytest --trainprobe` on tests that start ranks: one hangs, one is fine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TOKEN, python_path

pytestmark = pytest.mark.torch

TESTS = """
import os, socket, time
import torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, port, hangs):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for step in range(20):
        while step == 5 and rank == 1 and hangs:
            time.sleep(0.05)
        dist.all_reduce(torch.ones(3))
    dist.barrier()
    dist.destroy_process_group()

def start(hangs):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    mp.spawn(work, args=(port, hangs), nprocs=2)

def test_fine():
    start(False)

def test_takes_its_hang_for_success():
    try:
        start(True)
    except Exception:
        pass
"""


def run_pytest(folder: Path, token: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_ranks.py").write_text(TESTS)
    plugin = ("-p", "trainprobe.pytest_plugin", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, *words, "test_ranks.py"],
        cwd=folder,
        env={**os.environ, **python_path(), TOKEN: token, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_test_that_hangs_ends_with_the_report(job_folder: Path, token: str) -> None:
    done = run_pytest(job_folder, token, "--trainprobe", "--trainprobe-after", "12")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "HUNG" in done.stdout
    assert re.search(r"Rank 1 on \S+ stands still at test_ranks.py:\d+ in work", done.stdout)


def test_without_the_option_nothing_is_watched(job_folder: Path, token: str) -> None:
    done = run_pytest(job_folder, token, "-k", "fine")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True)
