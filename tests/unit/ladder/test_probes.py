"""Header blocks of probes: read as text, and whatever is wrong is named with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.ladder.probes import built_in_folder, find, in_folder, parse_header

GOOD = [
    "# /// trainprobe",
    "# rung: 15",
    "# question: Is it so?",
    "# needs: [torch]",
    "# timeout_s: 3.5",
    "# colour: red",
    "# ///",
    "import torch",
]


def test_a_header_block_becomes_a_spec() -> None:
    spec = parse_header("/x/quick_check.py", GOOD)

    assert spec is not None
    assert (spec.name, spec.rung, spec.question, spec.scope, spec.needs, spec.timeout_s) == (
        "quick_check",
        15,
        "Is it so?",
        "host",
        ("torch",),
        3.5,
    )
    assert spec.extra == {"colour": "red"}


def test_a_file_without_a_block_is_no_probe() -> None:
    assert parse_header("/x/y.py", ["import os", "# trainprobe"]) is None


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (GOOD[:-2], 1, "not closed"),
        ([*GOOD[:3], "scope: host", *GOOD[3:]], 4, "does not begin with #"),
        (["# /// trainprobe", "# rung: 15", "# question: [", "# ///"], 3, "not YAML"),
        (["# /// trainprobe", "# - rung", "# ///"], 1, "name: value"),
        (["# /// trainprobe", "# question: Is it so?", "# ///"], 1, "rung must be a number"),
        (["# /// trainprobe", "# rung: 15", "# ///"], 1, "question must be a text"),
        (
            ["# /// trainprobe", "# rung: many", "# question: Is it so?", "# ///"],
            2,
            "rung must be a number",
        ),
        (
            [
                "# /// trainprobe",
                "# rung: 1",
                "# question: Is it so?",
                "# timeout_s: .nan",
                "# ///",
            ],
            4,
            "timeout_s must be a number",
        ),
        (
            ["# /// trainprobe", "# rung: 1", "# question: Is it so?", "# needs: torch", "# ///"],
            4,
            "list of names",
        ),
        (
            [
                "# /// trainprobe",
                "# rung: 1",
                "# question: Is it so?",
                "# needs: [coffee]",
                "# ///",
            ],
            4,
            "coffee",
        ),
        (
            ["# /// trainprobe", "# rung: 1", "# question: Is it so?", "# scope: galaxy", "# ///"],
            4,
            "galaxy",
        ),
    ],
)
def test_a_broken_block_is_named_with_file_and_line(
    lines: list[str], line: int, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_header("/x/broken.py", lines)

    assert "/x/broken.py" in caught.value.says
    assert f"line {line}," in caught.value.says
    assert words in caught.value.says


def test_every_file_of_ours_has_a_good_block_and_rungs_ascend() -> None:
    specs = find(())

    blocks = [
        path
        for path in Path(built_in_folder()).glob("[!_]*.py")
        if path.read_text().startswith("# /// trainprobe")
        or "\n# /// trainprobe\n" in path.read_text()
    ]
    no_rungs = {
        spec.name for spec in in_folder(built_in_folder()) if spec.extra.get("ladder") is False
    }
    assert {spec.name for spec in specs} == {path.stem for path in blocks} - no_rungs
    assert no_rungs
    assert [spec.rung for spec in specs] == sorted(spec.rung for spec in specs)
    assert specs[-1].name == "user_script"
    assert {name for spec in specs for name in spec.after} <= {spec.name for spec in specs}


def test_another_folder_adds_probes_and_a_name_cannot_be_taken_twice(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("\n".join(GOOD))
    (tmp_path / "_shared.py").write_text("\n".join(GOOD))
    (tmp_path / "notes.py").write_text("print()")

    assert [spec.name for spec in in_folder(str(tmp_path))] == ["mine"]
    assert "mine" in [spec.name for spec in find((str(tmp_path),))]

    (tmp_path / "host.py").write_text("\n".join(GOOD))
    with pytest.raises(UsageError, match="Two probes are called host"):
        find((str(tmp_path),))


def test_a_folder_that_adds_nothing_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no probe in"):
        find((str(tmp_path),))
    with pytest.raises(UsageError, match="cannot be read"):
        find((str(tmp_path / "nowhere"),))
