"""The stories are well formed, and the results that docs/field-cases.md shows belong to them.
The live runs are `make small`.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.gallery.small import run
from tests.gallery.small.stories import BY_NAME, LIMIT_S, PROGRAMS, RESULTS, STORIES, Story
from tests.gallery.small.surroundings import end_as_told
from trainprobe.causes import built

LINES_OF_A_MEND = 40
each = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))["stories"]
    return found


@each
def test_a_story_has_programs_that_compile_and_a_cause_that_is_weighed(story: Story) -> None:
    assert story.cause in {cause.id for cause in built()}
    assert {*story.unsuspected} <= {cause.id for cause in built()}
    for path in (story.program("broken"), story.program("mended"), *story.beside):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")


@each
def test_the_mended_side_differs_from_the_broken_one_and_not_by_much(story: Story) -> None:
    before, after = (
        story.program(side).read_text(encoding="utf-8").splitlines() for side in run.SIDES
    )
    changed = [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if line[0] in "+-" and line[:3] not in ("+++", "---")
    ]
    surroundings = bool(story.shells or story.earlier)
    assert bool(changed) != surroundings  # either the program is mended, or what is around it
    assert len(changed) <= LINES_OF_A_MEND


@each
def test_a_program_does_not_tell_what_is_wrong_with_it(story: Story) -> None:
    words = {
        story.cause,
        story.cause.replace("-", " "),
        story.cause.replace("-", "_"),
        "broken",
        "mended",
        "deadlock",
        "trainprobe diagnose",
    }
    for path in (story.program("broken"), *story.beside):
        assert not [word for word in words if word in path.read_text(encoding="utf-8")]


def test_each_folder_is_a_story() -> None:
    assert {path.name for path in PROGRAMS.iterdir() if any(path.glob("*.py"))} == set(BY_NAME)


def test_the_results_belong_to_these_stories() -> None:
    assert {row["name"]: row["digest"] for row in rows()} == {
        story.name: story.digest() for story in STORIES
    }, "run: make small"


def test_the_results_name_no_machine_and_no_folder() -> None:
    text = RESULTS.read_text(encoding="utf-8")
    assert os.sep + "tmp" not in text
    assert os.path.expanduser("~") not in text


def side(
    cause: str,
    *,
    verdict: str = "hung",
    exit_code: int = 1,
    took_s: float = 20.0,
    steps: tuple[str, ...] = (),
) -> run.Side:
    first: Mapping[str, Any] = {
        "id": cause,
        "confidence": 0.9,
        "fixes": [{"title": "Cure it", "steps": list(steps)}],
    }
    return run.Side(exit_code, took_s, {"verdict": verdict, "causes": [first] if cause else []}, "")


def test_what_counts_as_found() -> None:
    story = BY_NAME["tokens"]
    good, well = (
        side("queue-deadlock", steps=(f"x; {story.applied}",)),
        side("", verdict="healthy", exit_code=0),
    )
    assert run.faults(story, good, well) == []
    assert run.faults(story, side("rank-stuck"), well) == [
        "first cause rank-stuck in place of queue-deadlock"
    ]
    assert run.faults(story, side("queue-deadlock"), well) == [f"no fix says {story.applied}"]
    assert run.faults(story, good, None) == ["the fix could not be applied"]
    assert run.faults(story, good, side("rank-stuck")) == [
        "the mended side is hung (rank-stuck), exit 1"
    ]
    slow = side("queue-deadlock", steps=(story.applied,), took_s=LIMIT_S + 10)
    assert run.faults(story, slow, well) == ["the broken side took 100 s"]
    suspected = {
        "verdict": "hung",
        "causes": [
            *good.report["causes"],
            {"id": "trainer-removed-columns", "confidence": 0.4, "fixes": []},
        ],
    }
    captions = run.faults(BY_NAME["captions"], run.Side(1, 1.0, suspected, ""), well)
    assert "trainer-removed-columns is suspected" in captions


def test_only_what_was_started_here_is_ended_as_told() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    report = {"causes": [{"fixes": [{"steps": [f"kill {sleeper.pid} {os.getpid()}   (both)"]}]}]}
    assert not end_as_told(report, frozenset({sleeper.pid}))
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()
    assert not end_as_told({"causes": []}, frozenset({1}))


def test_a_story_is_laid_out_under_a_name_that_says_nothing(tmp_path: Path) -> None:
    for story in STORIES:
        folder = tmp_path / str(STORIES.index(story))
        folder.mkdir()
        run.lay_out(story, "broken", folder)
        assert (folder / "train.py").read_bytes() == story.program("broken").read_bytes()
        assert not [path for path in folder.rglob("*") if path.stem in ("broken", "mended")]
