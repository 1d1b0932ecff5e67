"""action.yml and its program: what a pull request changes is linted, and its lines annotated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.conftest import ROOT
from tests.test_package import load

HANGS = """\
import torch.distributed as dist


def save(model):
    if dist.get_rank() == 0:
        dist.barrier()
"""


@pytest.fixture
def action(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with the trainprobe of these tests instead of an environment of its own."""
    program = load("lint_pull_request")
    monkeypatch.setattr(program, "install", lambda: [sys.executable, "-m", "trainprobe"])
    return program


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which a branch adds a second hang to a file that has one already."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    (tmp_path / "old, and odd.py").write_text(HANGS)
    git("add", ".")
    git("commit", "--message", "before")
    git("checkout", "-b", "request")
    (tmp_path / "new.py").write_text(HANGS)
    git("add", ".")
    git("commit", "--message", "the request")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("BASE", "main")
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path.parent / name))
    for name in [name for name in os.environ if name.startswith("INPUT_")]:
        monkeypatch.delenv(name)
    return tmp_path


def test_only_the_lines_of_the_request_are_annotated(
    action: ModuleType, request_of: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert action.main() == 1
    (command,) = [
        line for line in capfd.readouterr().out.splitlines() if line.startswith("::warning ")
    ]
    assert command.startswith(
        "::warning file=new.py,line=6,col=9,title=rank-conditional-collective::"
    )
    assert "%0AInstead: " in command
    written = {
        name: (request_of.parent / name).read_text()
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    }
    assert written["GITHUB_OUTPUT"] == "findings=1\n"
    assert "| `new.py:6` | rank-conditional-collective |" in written["GITHUB_STEP_SUMMARY"]


def test_all_lines_are_annotated_where_that_is_asked_for(
    action: ModuleType,
    request_of: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (request_of / "broken.py").write_text("def (:\n")
    monkeypatch.setenv("INPUT_SINCE", "all")
    monkeypatch.setenv("INPUT_FAIL", "false")
    assert action.main() == 0
    said = capfd.readouterr().out
    assert said.count("::warning ") == 2
    assert "file=old%2C and odd.py,line=6" in said
    assert "::error file=broken.py::not read: " in said


def test_a_base_that_the_clone_does_not_have_is_said(
    action: ModuleType,
    request_of: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert request_of.exists()
    monkeypatch.setenv("BASE", "0" * 40)
    assert action.main() == 1
    said = capfd.readouterr().out
    assert "::notice::" in said
    assert said.count("::warning ") == 2


def test_the_action_hands_over_what_its_program_reads() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    program = (ROOT / ".ci" / "lint_pull_request.py").read_text(encoding="utf-8")
    assert ".ci/lint_pull_request.py" in step["run"]
    assert {f"INPUT_{name.upper()}" for name in action["inputs"]} == set(step["env"]) - {"BASE"}
    read_here = set(step["env"]) - {"INPUT_PYTHON"}
    assert all(f'"{name}"' in program for name in read_here)
