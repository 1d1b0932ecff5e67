"""Ten healthy runs in a row blame nobody. The gallery holds more programs; here one small script
is run as a user would run it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import RunTool
from tests.gallery.specimens import PACE, TORCHRUN_ON_PATH, command, plant


@pytest.mark.torch
@pytest.mark.soak
@pytest.mark.parametrize("turn", range(10))
def test_a_small_script_blames_nobody(turn: int, run_tool: RunTool, job_folder: Path) -> None:
    words = command(
        ("own", "torchrun")[turn % 2], plant("healthy", "ends_after_twenty_steps", job_folder)
    )
    rungs = [
        "--nproc",
        "2",
        "--only",
        "host,environment,user_script",
        "--config",
        str(PACE),
        "--python",
        sys.executable,
    ]
    done = run_tool("diagnose", *rungs, "--", *words, env=TORCHRUN_ON_PATH, timeout_s=150)
    assert (
        done.report["verdict"],
        done.report["causes"],
        done.report["suspects"],
        done.exit_code,
    ) == ("healthy", [], [], 0), f"\n{done}"
