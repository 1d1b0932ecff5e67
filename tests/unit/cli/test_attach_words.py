"""What attach says while it looks, and how it asks."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest

from tests.conftest import python_path
from trainprobe.cli import run
from trainprobe.cli.attach import ask
from trainprobe.cli.live_look import LateNotes
from trainprobe.errors import UsageError


def test_a_quick_look_says_nothing() -> None:
    said = io.StringIO()
    notes = LateNotes(said, 5.0)
    notes.note("Looking at 5 processes.")
    notes.close()
    assert said.getvalue() == ""


def test_after_its_patience_it_says_the_newest_and_then_all() -> None:
    said = io.StringIO()
    notes = LateNotes(said, 0.1)
    notes.note("Looking at 5 processes.")
    notes.note("One more look.")
    time.sleep(0.3)
    notes.note("Done \x1b[31msoon.")
    notes.close()
    lines = said.getvalue().splitlines()
    assert lines[0] == "One more look."
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


@pytest.mark.parametrize(("answer", "place"), [("2\n", 1), (" 1 \n", 0)])
def test_an_answer_by_number(monkeypatch: pytest.MonkeyPatch, answer: str, place: int) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert ask(["10  torchrun", "20  accelerate"]) == place


@pytest.mark.parametrize("answer", ["", "\n", "0\n", "3\n", "-1\n", "x\n", "٢\n", "99999999\n"])
def test_no_answer(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    with pytest.raises(UsageError, match="No job was chosen"):
        ask(["10  torchrun", "20  accelerate"])


@pytest.mark.parametrize(
    "argv",
    [
        ["attach", "x"],
        ["attach", "1", "--times", "3"],
        ["attach", "1", "--watch", "0"],
        ["attach", "1", "--watch", "5", "--quick"],
        ["attach", "--hosts", "a,b", "--quick"],
        ["attach", "1", "--timeout", "nan"],
    ],
)
def test_words_that_cannot_be_meant(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert run(argv) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_looker_is_the_first_to_die_when_memory_runs_out() -> None:
    program = (
        "from trainprobe.attach.visit import first_to_die; first_to_die();"
        " print(open('/proc/self/oom_score_adj').read())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=python_path(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "1000"
