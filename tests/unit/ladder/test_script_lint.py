"""When the script is read before the climb, and which file that is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.config import settings_of
from trainprobe.errors import UsageError
from trainprobe.ladder import script_lint
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.planning import make_plan
from trainprobe.ladder.script_lint import lint_the_script
from trainprobe.model.evidence import Evidence
from trainprobe.model.request import DiagnoseRequest

COMMAND = ("torchrun", "--nproc-per-node", "{ranks}", "-m", "pkg.train", "--lr", "1")


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pkg" / "tool").mkdir(parents=True)
    for name in ("train.py", "pkg/__init__.py", "pkg/train.py", "pkg/tool/__main__.py"):
        (tmp_path / name).write_text("import os\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*argv: str, form: Any = "launch", settings: str = "", **asked: Any) -> Plan:
    return make_plan(
        DiagnoseRequest(interpreter=sys.executable, nproc=2, form=form, argv=argv, **asked),
        settings_of(settings, "trainprobe.yaml"),
    )


def looks(plan: Plan, folder: Path, left_s: float = 60.0) -> tuple[Evidence, ...]:
    with Case.create(str(folder / "case"), "diagnose", ()) as case:
        lint_the_script(plan, case, left_s)
        return tuple(case.evidence)


def test_the_script_is_read(job: Path) -> None:
    (one,) = looks(planned("train.py"), job)

    assert (one.kind, one.outcome, one.data["script"], one.cell) == (
        "lint",
        "ok",
        str(job / "train.py"),
        "",
    )


@pytest.mark.parametrize(
    "plan",
    [
        {"argv": ("train.py",), "skip": ("lint",)},
        {"argv": ("train.py",), "settings": "rungs: {skip: [lint]}", "skip": ("lint",)},
        {"argv": ("train.py",), "settings": "lint: false"},
        {"argv": ("train.py",), "only": ("host",)},
        {"argv": ("train.py",), "skip": ("user_script",)},
        {"argv": (), "form": "none"},
        {"argv": ("true",), "form": "command"},
    ],
)
def test_nothing_is_read_where_it_was_left_out_or_there_is_no_script(
    job: Path, plan: dict[str, Any]
) -> None:
    assert looks(planned(*plan.pop("argv"), **plan), job) == ()


def test_nothing_is_read_once_the_time_of_the_climb_is_over(job: Path) -> None:
    assert looks(planned("train.py"), job, left_s=0.0) == ()


def test_lint_is_skipped_by_name_and_is_no_rung() -> None:
    with pytest.raises(UsageError, match="--only names lint, which is not a rung"):
        planned("train.py", only=("lint",))


@pytest.mark.parametrize(
    ("argv", "file"),
    [
        (COMMAND[1:], "pkg/train.py"),
        (("-m", "pkg.tool"), "pkg/tool/__main__.py"),
        (("-m", "torch.distributed.run", "-m", "pkg.train"), "pkg/train.py"),
        (("-m", "torch.distributed.run", "train.py"), "train.py"),
        (("-m", "../train"), ""),
        (("-m", "nowhere.train"), ""),
        (("-c", "exec(open('train.py').read())"), ""),
    ],
)
def test_the_script_of_a_command_is_found_also_where_it_is_a_module(
    job: Path, argv: tuple[str, ...], file: str
) -> None:
    plan = planned(sys.executable, *argv, form="command")

    assert script_lint.script_of(plan) == (str(job / file) if file else "")


def test_the_number_of_ranks_is_told_where_it_is_known(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        script_lint, "look_with_lint", lambda _case, asked, **_: told.append(asked.ranks)
    )

    for plan in (
        planned("train.py"),
        planned(sys.executable, *COMMAND[1:], form="command"),
        planned(sys.executable, "train.py", form="command"),
    ):
        looks(plan, job / f"{len(told)}")

    assert told == [2, 2, None]
