"""Numbers, lists and the command after the dashes, as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.cli.arguments import form_of, names, seconds, whole_number
from trainprobe.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), (" 8 ", 8), ("+4", 4), ("1024", 1024), (None, None)]
)
def test_whole_numbers(text: str | None, value: int | None) -> None:
    assert whole_number("--nproc", text) == value


@pytest.mark.parametrize(
    "text", ["0", "-3", "1000000000", "9" * 5000, "x", "", "4.0", "1e2", "٣", "+-4", "0x4", "1_0"]
)
def test_nonsense_numbers_are_one_sentence(text: str) -> None:
    with pytest.raises(
        UsageError, match="--nproc needs a whole number from 1 to 1024, not "
    ) as caught:
        whole_number("--nproc", text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("90", 90.0), (None, None)])
def test_seconds(text: str | None, value: float | None) -> None:
    assert seconds("--timeout", text) == value


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon", "1e9", ""])
def test_nonsense_seconds_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="--timeout needs seconds"):
        seconds("--timeout", text)


def test_names_may_be_joined_or_repeated() -> None:
    assert names(["a,b", "c", " a ", ","]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ((), "none"),
        (("train.py", "--nproc", "3"), "launch"),
        (("dir/run.pyw",), "launch"),
        (("torchrun", "train.py"), "command"),
        (("python", "a.py"), "command"),
    ],
)
def test_the_first_word_decides_the_form(words: tuple[str, ...], form: str) -> None:
    assert form_of(words, len(words)) == form


def test_a_python_file_without_the_ending_is_launched_unless_it_runs_by_itself(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train"
    script.write_text("#!/usr/bin/env python3\nprint()\n")
    assert form_of((str(script),), 1) == "launch"
    script.chmod(0o755)
    assert form_of((str(script),), 1) == "command"


def test_a_script_before_the_dashes_is_named_with_the_way_out() -> None:
    with pytest.raises(
        UsageError, match=r"'train.py' is not an option. .* trainprobe diagnose -- train.py"
    ):
        form_of(("train.py",), -1)
