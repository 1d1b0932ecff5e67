"""A second run over the same source reads it no more, and over any other one does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainprobe.cli.linting import look
from trainprobe.lint import kept_answers, reading
from trainprobe.lint.output import LintResult

FAULT = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    write(folder / "t.py", "import helper\n" + FAULT)
    write(folder / "helper.py", "x = 1\n")
    return folder


def write(path: Path, text: str) -> None:
    path.write_text(text)
    old = time.time() - 60  # what was written within a tick of the clock is never kept
    os.utime(path, (old, old))


def asked(*paths: Path, use_cache: bool = True, cpus: int | None = None) -> LintResult:
    return look(
        [str(path) for path in paths],
        select=(),
        ignore=(),
        fix=False,
        diff=False,
        cpus=cpus,
        use_cache=use_cache,
    )[0]


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read and parsed."""
    read: list[str] = []
    text_of = reading.text_of

    def noted(path: str) -> str:
        read.append(os.path.basename(path))
        return text_of(path)

    monkeypatch.setattr(reading, "text_of", noted)
    return read


def test_the_same_source_is_read_once(tree: Path, read_files: list[str]) -> None:
    first = asked(tree)
    assert read_files == ["helper.py", "t.py"]
    again = asked(tree)
    assert read_files == ["helper.py", "t.py"]
    assert again.findings == first.findings
    assert len(first.findings) == 1
    assert (again.read.files, again.read.lines) == (first.read.files, first.read.lines)
    assert again.findings[0].fix is not None


def test_without_cache_it_is_read_again(tree: Path, read_files: list[str]) -> None:
    asked(tree)
    asked(tree, use_cache=False)
    assert read_files == ["helper.py", "t.py"] * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.py", "import helper\nimport torch.distributed as dist\n"),
        ("helper.py", "x = 2\n"),
        ("new.py", FAULT),
    ],
)
def test_any_difference_makes_a_new_answer(
    tree: Path, read_files: list[str], name: str, text: str
) -> None:
    asked(tree)
    write(tree / name, text)
    fresh = asked(tree)
    assert len(read_files) >= 4
    assert fresh.findings == asked(tree, use_cache=False).findings


def test_options_make_another_question(tree: Path, read_files: list[str]) -> None:
    asked(tree)
    asked(tree, cpus=4)
    assert len(read_files) == 4


def test_a_file_that_was_missing_counts(tree: Path, read_files: list[str]) -> None:
    (tree / "helper.py").unlink()
    asked(tree / "t.py")
    asked(tree / "t.py")
    assert read_files == ["t.py"]
    write(tree / "helper.py", "x = 1\n")
    asked(tree / "t.py")
    assert read_files == ["t.py", "t.py", "helper.py"]


def test_what_changes_while_it_is_read_is_not_kept(tree: Path, read_files: list[str]) -> None:
    (tree / "t.py").write_text("import helper\n" + FAULT)  # stamped with the present
    asked(tree)
    asked(tree)
    assert len(read_files) == 4


def test_what_could_not_be_read_is_told_again(tree: Path) -> None:
    write(tree / "broken.py", "def f(:\n")
    first, again = asked(tree), asked(tree)
    assert first.not_read == again.not_read
    assert not again.complete


def test_a_broken_answer_is_none(tree: Path, cache_home: Path, read_files: list[str]) -> None:
    asked(tree)
    (kept,) = (cache_home / "trainprobe" / "lint").glob("answer-*.json")
    for text in ("", "{}", "[]", '{"listed": 1}'):
        kept.write_text(text)
        assert len(asked(tree).findings) == 1
    assert len(read_files) == 10


def test_a_home_that_cannot_be_written_costs_only_time(
    tree: Path, cache_home: Path, read_files: list[str]
) -> None:
    (cache_home / "trainprobe").write_text("no folder")
    assert len(asked(tree).findings) == len(asked(tree).findings) == 1
    assert len(read_files) == 4


def test_a_file_that_cannot_be_read_is_told_each_time(tree: Path, read_files: list[str]) -> None:
    (tree / "locked.py").symlink_to("/proc/self/mem")  # opens, and gives nothing
    first, again = asked(tree), asked(tree)
    assert first.not_read == again.not_read
    assert len(first.not_read) == 1
    assert len(read_files) == 6


def test_without_its_own_source_nothing_is_kept(
    tree: Path, read_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_answers._of_this_version.cache_clear()
    monkeypatch.setattr(kept_answers, "__file__", str(tree / "no" / "kept_answers.pyc"))
    try:
        assert len(asked(tree).findings) == len(asked(tree).findings) == 1
    finally:
        kept_answers._of_this_version.cache_clear()
    assert len(read_files) == 4
