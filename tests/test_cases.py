"""Golden cases: each saved run is judged to the byte as it was, wherever it lies, and no damage
makes the judge fall.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases.expectation import CASES, differences, judged, names, untrue
from tests.cases.recipes import RECIPES
from tests.cases.scrub import MOST_BYTES
from tests.conftest import python_path
from trainprobe.errors import UsageError

NAMES = names()
DAMAGED = [
    pytest.param(name, marks=() if place % 4 == 0 else pytest.mark.soak)
    for place, name in enumerate(NAMES)
]
"""Every fourth case is damaged in each run of the tests, the others in `make soak`."""
HOW_TO_ACCEPT = "If the new report is right: python -m tests.cases.accept"


def test_every_recipe_has_its_case() -> None:
    assert sorted(RECIPES) == NAMES, "python -m tests.cases.capture makes what is missing"


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_case_is_judged_as_it_was(name: str) -> None:
    actual = judged(CASES / name)
    assert not untrue(name, actual)
    diff = differences(name, actual)
    assert not diff, (
        f"{name} is judged otherwise; see tests/actual/{name}/. {HOW_TO_ACCEPT} {name}\n{diff}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_place_of_a_case_changes_nothing(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "moved here" / "by 'hand'"
    shutil.copytree(CASES / name, elsewhere, ignore=shutil.ignore_patterns("expected"))
    assert judged(elsewhere) == judged(CASES / name)


@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_small_and_tells_nothing_of_the_machine_that_made_it(name: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (CASES / name).glob("*.json*"))
    assert len(text) <= MOST_BYTES + 1000
    assert json.loads((CASES / name / "case.json").read_text())["host"] == "node1"
    for trace in ("/root", "/home/", "/work/", "/Users/", "/builds/"):
        assert trace not in text.replace("/home/user", ""), trace


@pytest.mark.parametrize("name", ["user-exception", "healthy-ladder"])
def test_the_judge_reads_the_case_and_touches_nothing_else(name: str, tmp_path: Path) -> None:
    program = CASES / "judges_under_audit.py"
    environment = {**os.environ, **python_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, program, CASES / name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stderr)
    assert told["seen"] == []
    assert told["case_files"] == [".", "case.json", "evidence.jsonl"] or told["case_files"] == [
        "case.json",
        "evidence.jsonl",
    ]
    assert json.loads(done.stdout)["verdict"] == RECIPES[name].verdict
    assert told["code"] == (0 if RECIPES[name].verdict == "healthy" else 1)
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------------------- damage


def damaged(name: str, folder: Path, change: Callable[[list[bytes]], bytes]) -> None:
    """Copy a case with its evidence changed, judge it, and print it: a report or one sentence
    must come of it.
    """
    shutil.copy(CASES / name / "case.json", folder / "case.json")
    lines = (CASES / name / "evidence.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "evidence.jsonl").write_bytes(change(lines))
    try:
        actual = judged(folder)
    except UsageError:
        return
    report = json.loads(actual["diagnosis.json"])
    assert not any(" failed in its " in says for says in report["unexplained"])
    assert report["verdict"] in ("healthy", "slow", "hung", "crashed", "at-risk", "undetermined")
    assert actual["report.txt"].count("\n") > 2


@pytest.mark.parametrize("name", DAMAGED)
def test_a_case_torn_at_any_line_is_judged(name: str, tmp_path: Path) -> None:
    count = len((CASES / name / "evidence.jsonl").read_bytes().splitlines())
    for cut in range(0, count, max(1, count // 12)):
        damaged(
            name,
            tmp_path,
            lambda lines, cut=cut: b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2],  # type: ignore[misc]
        )


@pytest.mark.parametrize("name", DAMAGED)
def test_a_case_without_one_kind_of_look_is_judged(name: str, tmp_path: Path) -> None:
    lines = (CASES / name / "evidence.jsonl").read_bytes().splitlines()
    for kind in sorted({json.loads(line)["kind"] for line in lines}):
        damaged(
            name,
            tmp_path,
            lambda lines, kind=kind: b"".join(  # type: ignore[misc]
                line for line in lines if json.loads(line)["kind"] != kind
            ),
        )


NONSENSE: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        2**70,
        -(2**70),
        1e308,
        float("inf"),
        float("nan"),
        "",
        "x",
        "\u0000\ud800",
        [],
        [None],
        {},
        {"": None},
        [[[]]],
        "9" * 400,
    ]
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in JSON data, as the keys that lead there."""
    found = [path] if path else []
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        found += places(value, (*path, key))
    return found


def put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


@st.composite
def changes(draw: st.DrawFn) -> Callable[[list[bytes]], bytes]:
    """Draw one way to damage a file of lines."""
    how = draw(
        st.sampled_from(["shuffle", "repeat", "drop", "bytes", "values", "values", "values"])
    )
    where = draw(st.lists(st.floats(0, 0.999999), min_size=1, max_size=6))
    noise, value, seed = (
        draw(st.binary(max_size=60)),
        draw(NONSENSE),
        draw(st.randoms(use_true_random=False)),
    )

    def change(lines: list[bytes]) -> bytes:
        lines = list(lines)
        for part in where:
            if not lines:
                break
            index = int(part * len(lines))
            if how == "shuffle":
                seed.shuffle(lines)
            elif how == "repeat":
                lines.insert(0, lines[index])
            elif how == "drop":
                del lines[index]
            elif how == "bytes":
                at = seed.randrange(len(lines[index]))
                lines[index] = lines[index][:at] + noise + lines[index][at + len(noise) :]
            else:
                look = json.loads(lines[index])
                put(look, seed.choice(places(look)), value)
                lines[index] = json.dumps(look).encode() + b"\n"
        return b"".join(lines)

    return change


@pytest.mark.parametrize("name", DAMAGED)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(change=changes())
def test_nonsense_in_a_case_never_makes_the_judge_fall(
    name: str, tmp_path: Path, change: Callable[[list[bytes]], bytes]
) -> None:
    damaged(name, tmp_path, change)


@pytest.mark.parametrize("time", [float("inf"), float("nan"), -1.0, 1e300, 2**70])
@pytest.mark.parametrize("field", ["began", "took_s"])
@pytest.mark.parametrize("name", ["user-exception", "attach-lock-held-outside"])
@pytest.mark.parametrize("every", [1, 2])
def test_times_that_are_none_do_not_reach_the_report(
    name: str, field: str, every: int, time: float, tmp_path: Path
) -> None:
    def late(lines: list[bytes]) -> bytes:
        looks = [json.loads(line) for line in lines]
        return b"".join(
            json.dumps({**look, field: time} if place % every == 0 else look).encode() + b"\n"
            for place, look in enumerate(looks)
        )

    damaged(name, tmp_path, late)


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": 3}',
        b"\xff\xfe",
        b'{"schema": "trainprobe.case/1"}',
        b"[" * 100_000,
    ],
)
def test_a_nonsense_head_of_a_case_is_told_in_a_sentence(meta: bytes, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(meta)
    (tmp_path / "evidence.jsonl").write_bytes(b"")
    with pytest.raises(UsageError, match=r"."):
        judged(tmp_path)


def test_an_empty_case_claims_nothing(tmp_path: Path) -> None:
    shutil.copy(CASES / NAMES[0] / "case.json", tmp_path / "case.json")
    (tmp_path / "evidence.jsonl").write_bytes(b"")
    report = json.loads(judged(tmp_path)["diagnosis.json"])
    assert (report["verdict"], report["causes"]) == ("undetermined", [])
