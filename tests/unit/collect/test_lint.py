"""The script as lint reads it: findings, what could not be read, and that nothing keeps the
climb waiting.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.collectors import lint
from trainprobe.collect.collectors.lint import (
    LintRequest,
    look_with_lint,
    look_with_lint_at_stacks,
    read_with_lint,
    understand,
)
from trainprobe.collect.collectors.source import Site
from trainprobe.model.evidence import Ended, Evidence
from trainprobe.system.run import Ran

ILL = """
import torch
import torch.distributed as dist

def save(model):
    if dist.get_rank() == 0:
        torch.save(model, "model.pt")
        dist.barrier()
"""
ANSWER = {"files": 2, "lines": 40, "cut": False, "findings": [], "not_read": []}


def written(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return str(folder / "train.py")


def ran(*answers: Any, how: Any = "exited", **ended: Any) -> Ran:
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in answers)
    return Ran(
        ("python",),
        Ended(how, **{"code": 0 if how == "exited" else None, **ended}),
        lines,
        b"",
        cut=False,
    )


def test_what_lint_finds_in_the_script_and_in_what_it_imports_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, train="import saving\nsaving.save(None)\n", saving=ILL)

    with Case.create(str(tmp_path / "case"), "diagnose", ()) as case:
        one = look_with_lint(case, LintRequest(path, str(tmp_path)))

    assert (one.kind, one.outcome, one.data["files"]) == ("lint", "ok", 2)
    (found,) = one.data["findings"]
    assert (found["id"], Path(found["file"]).name, found["line"]) == (
        "rank-conditional-collective",
        "saving.py",
        8,
    )
    assert found["confidence"] > 0.6
    assert found["fix"]


def test_the_number_of_ranks_and_the_limits_of_this_machine_are_known_to_lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path,
        train=(
            "from torch.utils.data import DataLoader\nloader = DataLoader(list(range(9)),"
            " num_workers=3)\nfor one in loader: pass\n"
        ),
    )
    monkeypatch.setattr(lint, "_limits", lambda: {"cpus": 8, "descriptors": None})

    def causes(ranks: int | None) -> set[str]:
        return {
            row["id"]
            for row in read_with_lint(LintRequest(path, str(tmp_path), ranks=ranks)).data[
                "findings"
            ]
        }

    assert "cpu-oversubscribed" in causes(8)
    assert "cpu-oversubscribed" not in causes(2)


def test_the_script_is_never_run_and_no_module_beside_it_either(tmp_path: Path) -> None:
    marks = "open('ran', 'w').close()\n"
    path = written(
        tmp_path,
        train=f"import json, yaml, trainprobe\n{marks}",
        json=marks,
        yaml=marks,
        trainprobe=marks,
        ast=marks,
    )

    seen = read_with_lint(LintRequest(path, str(tmp_path), sys.executable))

    assert seen.outcome == "ok"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("match = (\n", "It is not Python of this version"),
        (
            "x = " + "(" * 5000 + ")" * 5000,
            "It is n",
        ),  # too deep for one parser, no Python for another
        ("x = '" + "a" * 300_000 + "'\n", "no source that a person wrote"),
        ("# coding: klingon\n", "declares an encoding"),
    ],
)
def test_source_that_cannot_be_read_is_a_look_with_its_reason(
    tmp_path: Path, text: str, words: str
) -> None:
    seen = read_with_lint(LintRequest(written(tmp_path, train=text), str(tmp_path)))

    assert seen.outcome == "unavailable"
    assert seen.reason.startswith("train.py: ")
    assert words in seen.reason


def test_a_script_that_is_gone_is_a_look_with_its_reason(tmp_path: Path) -> None:
    assert (
        read_with_lint(LintRequest(str(tmp_path / "gone.py"), str(tmp_path))).outcome
        == "unavailable"
    )


def test_a_module_that_cannot_be_read_leaves_the_rest(tmp_path: Path) -> None:
    seen = read_with_lint(
        LintRequest(
            written(tmp_path, train="import broken\nimport saving\n", saving=ILL, broken="def (\n"),
            str(tmp_path),
        )
    )

    assert seen.outcome == "partial"
    assert seen.reason.startswith("broken.py was left out: ")
    assert [row["line"] for row in seen.data["findings"]] == [8]


def test_of_a_large_project_the_nearest_modules_are_read_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint, "TURNS", (5, 20))
    chain = {f"part{number}": f"import part{number + 1}\n" + "x = 1\n" * 9 for number in range(9)}
    seen = read_with_lint(
        LintRequest(written(tmp_path, train="import part0\n", **chain), str(tmp_path))
    )

    assert (seen.outcome, seen.data["files"]) == ("partial", 3)
    assert seen.reason == "Only the 24 lines nearest to the script were read at once."


def test_at_the_deadline_what_the_smaller_turn_found_is_kept() -> None:
    first = {**ANSWER, "cut": True, "findings": [{"id": "fork-hazard"}]}

    seen = understand(ran(first, how="timed_out", by_us=True), "/job/train.py", 5.0)

    assert (seen.outcome, seen.data["findings"]) == ("partial", [{"id": "fork-hazard"}])
    assert seen.reason == "Only the 40 lines nearest to the script were read in 5 s."


@pytest.mark.parametrize(
    ("ended", "outcome", "words"),
    [
        (ran(how="timed_out", by_us=True), "timed_out", "reading train.py did not end within 5 s"),
        (
            ran(how="not_started", reason="no such file"),
            "unavailable",
            "it could not be started: no such file",
        ),
        (ran(how="signalled", signal=11), "crashed", "ended with signal 11"),
        (
            ran("nonsense", {"findings": 3}, [], {"findings": [], "not_read": []}, code=1),
            "crashed",
            "ended with exit status 1",
        ),
    ],
)
def test_no_answer_is_a_look_with_its_reason(ended: Ran, outcome: str, words: str) -> None:
    seen = understand(ended, "/job/train.py", 5.0)

    assert seen.outcome == outcome
    assert words in seen.reason


def test_the_deadline_holds(tmp_path: Path) -> None:
    path = written(tmp_path, train="x = 1\n" * 200_000)

    seen = read_with_lint(LintRequest(path, str(tmp_path)), deadline_s=0.05)

    assert seen.outcome == "timed_out"


def test_versions_are_those_of_the_python_that_is_named(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text('#!/bin/sh\necho \'{"datasets": "3.6.0"}\'\n')
    other.chmod(0o755)

    assert lint._versions(str(other), 5.0) == {"datasets": "3.6.0"}
    assert lint._versions("/bin/false", 5.0) == {}
    assert lint._versions("", 5.0) == {}
    assert lint._versions(sys.executable, 5.0) is None


SWALLOWS = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
model = DDP(net)
for batch in batches:
    try:
        loss = model(batch)
        loss.backward()
        optimizer.step()
    except RuntimeError:
        continue
"""


def at_stacks(
    folder: Path, sites: list[Site], began: float | None = None, deadline_s: float = 5.0
) -> Evidence | None:
    with Case.create(str(folder / "case"), "attach", ()) as case:
        return look_with_lint_at_stacks(
            case, "job", sites, cwd=str(folder), began=began, deadline_s=deadline_s
        )


def test_of_a_live_job_only_the_users_files_on_the_stacks_are_read(tmp_path: Path) -> None:
    written(tmp_path, train="import helper\nhelper.go()\n", helper=SWALLOWS)
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "lib.py").write_text(ILL)
    library = Site(str(tmp_path / "site-packages" / "lib.py"), 7, "save", 0)

    one = at_stacks(
        tmp_path,
        [
            Site("train.py", 2, "<module>", 0),
            Site(str(tmp_path / "helper.py"), 10, "go", 0),
            library,
            Site("<string>", 1, "x", 0),
        ],
    )

    assert one is not None
    assert (one.kind, one.cell, one.outcome, one.data["files"], one.data["script"]) == (
        "lint",
        "job",
        "ok",
        2,
        str(tmp_path / "train.py"),
    )
    (found,) = one.data["findings"]
    assert (found["rule"], Path(found["file"]).name, found["span"]) == (
        "except-around-step",
        "helper.py",
        [8, 13],
    )


def test_stacks_without_a_file_of_the_users_are_no_look(tmp_path: Path) -> None:
    assert (
        at_stacks(
            tmp_path,
            [Site("<string>", 1, "x", 0), Site("/usr/lib/python3.11/threading.py", 5, "wait", 0)],
        )
        is None
    )


def test_a_file_that_was_changed_since_the_job_started_is_not_what_runs(tmp_path: Path) -> None:
    path = written(tmp_path, train=SWALLOWS)

    one = at_stacks(
        tmp_path, [Site("train.py", 9, "<module>", 0)], began=os.stat(path).st_mtime - 60
    )

    assert one is not None
    assert (one.outcome, one.data["script"]) == ("unavailable", path)
    assert "train.py was changed after the job had started" in one.reason


def test_a_file_that_was_written_within_the_second_of_the_start_is_what_runs(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, train=SWALLOWS)

    one = at_stacks(
        tmp_path, [Site("train.py", 9, "<module>", 0)], began=os.stat(path).st_mtime - 0.9
    )

    assert one is not None
    assert one.outcome == "ok"


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "f(" * 200 + ")" * 200 + "\n",
        "x = [\n" + "    {'a': [1, 2, (3, 4)]},\n" * 150_000 + "]\n",
        None,
    ],
)
def test_a_script_of_a_live_job_that_cannot_be_read_ends_in_a_reason_in_time(
    text: str | None, tmp_path: Path
) -> None:
    if text is None:
        os.mkfifo(tmp_path / "train.py")
    else:
        (tmp_path / "train.py").write_text(text)
    began = time.monotonic()

    one = at_stacks(tmp_path, [Site("train.py", 1, "<module>", 0)], deadline_s=2.0)

    assert one is not None
    assert time.monotonic() - began < 6
    assert one.outcome == "ok" or one.reason


def test_lint_of_a_live_job_under_an_old_python_is_a_look_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint, "LINT_NEEDS", (9, 9))
    written(tmp_path, train=SWALLOWS)

    one = at_stacks(tmp_path, [Site("train.py", 9, "<module>", 0)])

    assert one is not None
    assert (one.outcome, one.reason[:23]) == ("unavailable", "lint needs Python 9.9, ")
