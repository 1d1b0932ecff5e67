"""Healthy programs, some of them slow or silent: nobody is blamed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import RunTool, ToolRun
from tests.gallery.specimens import GALLERY, TORCHRUN_ON_PATH, command, plant

PROGRAMS = sorted(path.stem for path in (GALLERY / "healthy").glob("*.py"))


def healthy(run_tool: RunTool, job_folder: Path, name: str, form: str, nproc: int) -> ToolRun:
    script = plant("healthy", name, job_folder)
    pace = str(GALLERY / "healthy_pace.yaml")
    words = [
        "--nproc",
        str(nproc),
        "--only",
        "user_script",
        "--config",
        pace,
        "--python",
        sys.executable,
        "--",
        *command(form, script),
    ]
    return run_tool("diagnose", *words, env=TORCHRUN_ON_PATH, timeout_s=200)


def assert_nobody_is_blamed(done: ToolRun) -> None:
    assert (done.report.get("verdict"), done.report.get("causes"), done.exit_code) == (
        "healthy",
        [],
        0,
    ), f"\n{done}"


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [("silent", "own"), ("with_workers", "torchrun")])
def test_nobody_is_blamed(name: str, form: str, run_tool: RunTool, job_folder: Path) -> None:
    assert_nobody_is_blamed(healthy(run_tool, job_folder, name, form, nproc=2))


@pytest.mark.torch
@pytest.mark.soak
@pytest.mark.parametrize("turn", range(10))
@pytest.mark.parametrize("name", PROGRAMS)
def test_nobody_is_blamed_in_a_long_row(
    name: str, turn: int, run_tool: RunTool, job_folder: Path
) -> None:
    assert_nobody_is_blamed(
        healthy(
            run_tool,
            job_folder,
            name,
            ("torchrun", "own")[(turn + PROGRAMS.index(name)) % 2],
            nproc=2 + turn % 3,
        )
    )


@pytest.mark.torch
@pytest.mark.soak
@pytest.mark.parametrize("turn", range(5))
def test_the_whole_ladder_blames_nobody(turn: int, run_tool: RunTool, job_folder: Path) -> None:
    script = plant("healthy", PROGRAMS[turn % len(PROGRAMS)], job_folder)
    assert_nobody_is_blamed(
        run_tool(
            "diagnose", "--nproc", "4", "--python", sys.executable, "--", str(script), timeout_s=400
        )
    )
