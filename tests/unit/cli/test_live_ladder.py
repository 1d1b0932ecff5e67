"""The climb as it happens: lines that stay, a live line below, and nothing that a broken
terminal could break.
"""

from __future__ import annotations

import io
import re

from trainprobe.cli.live_ladder import LiveLadder, PlainLadder, named
from trainprobe.model.probes import ProbeSpec

PLAN = (
    ProbeSpec("host", 10, "Does the host hold?"),
    ProbeSpec("user_script", 1000, "Does it step?"),
)


def climb(ladder: PlainLadder | LiveLadder) -> None:
    """A short climb with a failure, a skipped rung, a note, and a string that tries to be
    markup.
    """
    ladder.plan(PLAN)
    ladder.cell_began("host", "host@1", 1, "Does the host hold?", 20.0)
    ladder.cell_ended("host", "host@1", "passed", 0.4, "all is well")
    ladder.cell_ended("basic_cuda", "basic_cuda@1", "skipped", 0.0, "no GPU")
    ladder.note("[bold]A plugin[/bold] did not load.\x1b[2J")
    ladder.cell_began("user_script", "user_script@4", 4, "Does it [red]step[/red]?", 90.0)
    ladder.cell_ended("user_script", "user_script@4", "timed_out", 91.2, "no progress\nfor 30 s")


def test_plain_lines() -> None:
    stream = io.StringIO()
    climb(PlainLadder(stream))
    assert stream.getvalue().splitlines() == [
        "host@1           began           Does the host hold? (at most 20 s)",
        "host@1           passed            0.4 s",
        "basic_cuda@1     skipped                  no GPU",
        "[bold]A plugin[/bold] did not load.",
        "user_script@4    began           Does it [red]step[/red]? (at most 1 min 30 s)",
        "user_script@4    timed_out    1 min 31 s  no progress for 30 s",
    ]


def test_the_live_ladder_leaves_the_same_lines() -> None:
    stream = io.StringIO()
    with LiveLadder(stream, colour=False) as ladder:
        climb(ladder)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n")
    kept = [line.rstrip() for line in shown.splitlines()]
    for line in (
        "host@1           passed            0.4 s",
        "[bold]A plugin[/bold] did not load.",
        "user_script@4    timed_out    1 min 31 s  no progress for 30 s",
    ):
        assert line in kept


def test_the_live_line_shows_question_and_time_against_the_deadline() -> None:
    ladder = LiveLadder(io.StringIO(), colour=False)
    ladder.plan(PLAN)
    ladder.cell_began("user_script", "user_script@4", 4, "Does it step? " * 20, 90.0)
    shown = str(ladder._now())
    assert "user_script@4" in shown
    assert "of at most 1 min 30 s" in shown
    assert len(shown) <= 80


class _Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(text[:1])


def test_a_reader_that_went_away_does_not_stop_the_climb() -> None:
    climb(PlainLadder(_Gone()))


def test_cells_of_the_grid_are_named_in_words() -> None:
    assert named("user_script@4x1000#workers=0") == "4 ranks x 1000 rows, workers=0"
    assert named("user_script@1x2") == "1 rank x 2 rows"
    assert named("user_script@2#again") == "2 ranks, again"
    assert named("user_script@4") == "user_script@4"
    assert named("host@1") == "host@1"
