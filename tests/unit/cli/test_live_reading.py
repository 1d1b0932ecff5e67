"""How far a reading has come: nothing of it for short ones, one line on a terminal that goes
away, a few sentences elsewhere.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.cli.live_reading import ReadingLine, ReadingSentences, reading
from trainprobe.logs import read_progress
from trainprobe.logs.read_progress import ReadProgress
from trainprobe.model.progress import Silence


class Heard(Silence):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.says: list[str] = []

    def note(self, says: str) -> None:
        self.says.append(says)


class Clock:
    """Stands in for the module time."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(read_progress, "time", made)
    return made


def sized(tmp_path: Path, *sizes: int) -> list[str]:
    paths = [tmp_path / f"{number}.log" for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        path.touch()
        os.truncate(path, size)
    return [str(path) for path in paths]


def test_files_bytes_rate_and_the_time_left_are_told_after_a_second(
    tmp_path: Path, clock: Clock
) -> None:
    heard = Heard()
    pace = ReadProgress(sized(tmp_path, 3_000_000_000, 1_000_000_000), heard)
    for now, read in (
        (100.4, 10),
        (100.9, 20),
        (101.0, 500_000_000),
        (101.2, 600_000_000),
        (102.0, 1_000_000_000),
    ):
        clock.now = now
        pace.at(read)
    clock.now = 106.0
    pace.done(3_000_000_000)
    assert heard.says == [
        "Reading: 500 MB of 4.0 GB (12 %), 0 of 2 files, 500 MB/s, 7 s left",
        "Reading: 1.0 GB of 4.0 GB (25 %), 0 of 2 files, 500 MB/s, 6 s left",
        "Reading: 3.0 GB of 4.0 GB (75 %), 1 of 2 files, 500 MB/s, 2 s left",
    ]
    clock.now = 108.0
    pace.done(1_000_000_000)
    pace.over()
    assert heard.says[3:] == [""]


def test_what_takes_less_than_a_second_says_nothing(tmp_path: Path, clock: Clock) -> None:
    heard = Heard()
    pace = ReadProgress(sized(tmp_path, 4_000, 900), heard)
    clock.now += 0.9
    pace.done(4_000)
    clock.now += 5  # the last file is over, so there is nothing left to wait for
    pace.done(900)
    pace.over()
    assert heard.says == []


def test_small_sizes_keep_their_unit(tmp_path: Path) -> None:
    pace = ReadProgress(sized(tmp_path, 4_000, 900), Heard())
    assert pace.says(2_000, 2.0) == "Reading: 2 kB of 5 kB (40 %), 0 of 2 files, 1 kB/s, 3 s left"
    assert ReadProgress(["-"], Heard()).says(30_000_000, 2.0) == "Reading: 30 MB, 1 file, 15 MB/s"


def test_sentences_come_every_few_seconds() -> None:
    stream = io.StringIO()
    often, seldom = ReadingSentences(stream, every_s=0.0), ReadingSentences(stream, every_s=3600.0)
    for listener in (often, seldom):
        for says in ("one", "two\x1b[2J", ""):
            listener.note(says)
    assert stream.getvalue().splitlines() == ["one", "two", "one"]


def test_the_line_overwrites_itself_and_is_gone_at_the_end() -> None:
    stream = io.StringIO()
    line = ReadingLine(stream)
    assert stream.getvalue() == ""
    line.note("Reading: one " + "x" * 300)
    line.note("Reading: two")
    line.note("")
    shown = stream.getvalue()
    assert "Reading: one" in shown
    assert "Reading: two" in shown
    assert screen(shown) == ""
    line.note("Reading: again")
    line.close()
    line.close()
    assert screen(stream.getvalue()) == ""


def screen(shown: str) -> str:
    """What stays on a terminal: carriage returns, lines erased, and the cursor going up."""
    lines, at = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", shown):
        if part == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b"):
            at = max(0, at - int(part[2:-1] or 1))
        elif part == "\x1b[2K":
            lines[at] = ""
        elif not part.startswith(("\x1b", "\r")):
            lines[at] = part
    return "".join(lines)


def test_a_terminal_that_went_away_costs_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    ReadingSentences(stream).note("one")
    line = ReadingLine(stream)
    line.note("one")
    line.close()


def test_quiet_is_silent_and_a_pipe_gets_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with reading(quiet=True) as listener:
        assert isinstance(listener, Silence)
    with reading(quiet=False) as listener:
        assert isinstance(listener, ReadingSentences)


SLOW = """
import sys, time
from trainprobe.logs import read_progress
read_progress.PATIENCE_S = read_progress.EVERY_S = 0.0
true = read_progress.ReadProgress.done
def slow(self, size):
    true(self, size)
    time.sleep(0.6)
read_progress.ReadProgress.done = slow
from trainprobe.cli import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [[], ["--quiet"]])
def test_on_a_real_terminal_the_report_follows_on_a_clean_line(
    tmp_path: Path, words: list[str]
) -> None:
    paths = sized(tmp_path, 0, 0)
    for path in paths:
        Path(path).write_text(
            'Traceback (most recent call last):\n  File "/w/fit.py", line 3, in fit\n   '
            " cut()\nValueError: no such split\n"
        )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SLOW, "explain", "--no-color", *words, *paths]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        shown = os.read(ours, 65536).decode()
    except OSError:  # nothing was written
        shown = ""
    os.close(ours)
    assert b"CRASHED" in ended.stdout
    assert b"Reading" not in ended.stdout
    assert ("1 of 2 files" in shown) is (not words)
    assert screen(shown) == ""


def test_tiny_inputs_say_nothing_beside_the_report(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("ValueError: no such split\n")
    command = [sys.executable, "-m", "trainprobe", "explain", str(log)]
    ended = subprocess.run(
        command,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    # on a crowded machine even this may take a second, and then progress is due
    assert re.sub(rb"[A-Z][a-z ]+: \d+ s\n", b"", ended.stderr) == b""
