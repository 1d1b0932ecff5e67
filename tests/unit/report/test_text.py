"""The canonical text: golden pages, their width, and strings that try to break the layout."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.report import handmade
from trainprobe.model.diagnosis import Report
from trainprobe.report.phrases import columns
from trainprobe.report.terminal import LOOKS, show, wants_colour
from trainprobe.report.text import quiet_text_of, report_lines, text_of

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b[0m\r\n  \x1b]0;title\x07[bold]not bold[/bold] \u202eright to left\u2066"
    " \x9b31m tab\tbell\x07 \ud800"
)


@pytest.mark.parametrize("name", handmade.ALL)
def test_the_text_is_the_golden_one(name: str) -> None:
    text = text_of(handmade.ALL[name])
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TRAINPROBE_ACCEPT"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 100, 300])
@pytest.mark.parametrize("name", handmade.ALL)
def test_no_line_is_wider_than_asked_for(name: str, width: int) -> None:
    assert max(columns(line) for line in text_of(handmade.ALL[name], width).splitlines()) <= min(
        width, 100
    )


def test_a_width_below_the_narrowest_is_ignored() -> None:
    assert text_of(handmade.HUNG, 7) == text_of(handmade.HUNG, 60)


@pytest.mark.parametrize("name", handmade.ALL)
def test_colour_changes_no_word(name: str) -> None:
    stream = io.StringIO()
    show(report_lines(handmade.ALL[name]), stream, colour=True)
    shown = stream.getvalue()
    assert "\x1b[" in shown
    without = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [line.rstrip() for line in without.splitlines()] == text_of(
        handmade.ALL[name]
    ).splitlines()


def test_without_colour_not_one_escape_is_written() -> None:
    stream = io.StringIO()
    show(report_lines(handmade.HUNG), stream, colour=False)
    assert stream.getvalue() == text_of(handmade.HUNG)


def _hostile() -> Report:
    hung = handmade.HUNG
    lock = hung.causes[0]
    return replace(
        hung,
        says=HOSTILE,
        case=HOSTILE,
        command=HOSTILE,
        causes=(
            replace(
                lock,
                id=HOSTILE,
                summary=HOSTILE,
                chain=(replace(lock.chain[0], waiter=HOSTILE, how=HOSTILE),),
                because=(replace(lock.because[0], says=HOSTILE, evidence=(HOSTILE,)),),
                fixes=(replace(lock.fixes[0], title=HOSTILE, steps=(HOSTILE,), verify=HOSTILE),),
            ),
        ),
        ladder=(
            replace(hung.ladder[0], probe=HOSTILE, question=HOSTILE),
            replace(hung.ladder[-1], says=HOSTILE),
        ),
        unexplained=(HOSTILE,),
        ruled_out=(replace(hung.ruled_out[0], id=HOSTILE, why=HOSTILE),),
        cascade=(replace(hung.cascade[0], says=HOSTILE),),
    )


def test_strings_from_evidence_cannot_steer_the_terminal() -> None:
    text = text_of(_hostile())
    assert not re.search(
        r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text
    )
    assert "[bold]not bold[/bold]" in text
    assert max(columns(line) for line in text.splitlines()) <= 100
    text.encode("utf-8")


def test_markup_in_evidence_is_shown_and_not_obeyed() -> None:
    stream = io.StringIO()
    show(report_lines(_hostile()), stream, colour=True)
    without = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert [line.rstrip() for line in without.splitlines()] == text_of(_hostile()).splitlines()


def test_a_newline_in_evidence_adds_no_line_that_looks_like_ours() -> None:
    said = replace(
        handmade.HEALTHY,
        says="fine\n\n 1  file-lock-held     almost certain, 99 %\n    do   1. rm -rf /",
    )
    assert not [line for line in text_of(said).splitlines() if line.startswith((" 1  ", "    do "))]


def test_a_long_command_is_continued_so_that_it_can_be_copied() -> None:
    step = "torchrun --nproc-per-node 8 " + " ".join(
        f"--option-{number} value-{number}" for number in range(12)
    )
    cause = handmade.HUNG.causes[0]
    report = replace(
        handmade.HUNG, causes=(replace(cause, fixes=(replace(cause.fixes[0], steps=(step,)),)),)
    )
    lines = text_of(report, 80).splitlines()
    start = next(place for place, line in enumerate(lines) if "torchrun" in line)
    copied = lines[start]
    while copied.endswith("\\"):
        start += 1
        copied = copied[:-1] + lines[start].strip()
    assert " ".join(copied.split()) == step


def test_a_word_longer_than_a_line_is_cut_and_nothing_is_lost() -> None:
    path = "/data/" + "x" * 300
    text = text_of(replace(handmade.HEALTHY, says=path))
    assert path in text.replace("\n", "")


def test_wide_letters_count_double() -> None:
    text = text_of(replace(handmade.HEALTHY, says="数据" * 80))
    assert max(columns(line) for line in text.splitlines()) <= 100


def test_quiet_leaves_the_headline_and_the_head_of_each_group() -> None:
    assert quiet_text_of(handmade.HEALTHY) == "HEALTHY. All 5 checks that apply here passed.\n"
    quiet = quiet_text_of(handmade.TWO_GROUPS)
    assert "unknown" in quiet
    assert "import-failure" in quiet
    assert "why " not in quiet
    assert "rank-killed" not in quiet


def test_a_report_that_says_nothing_still_has_a_headline() -> None:
    assert "HEALTHY. Every rung that applies passed." in text_of(replace(handmade.HEALTHY, says=""))
    assert "UNDETERMINED. Nothing was seen that decides it." in text_of(
        replace(handmade.UNDETERMINED, says="")
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it() -> None:
    assert wants_colour(_Terminal(), {})
    assert not wants_colour(_Terminal(), {"NO_COLOR": "1"})
    assert not wants_colour(_Terminal(), {"TERM": "dumb"})
    assert not wants_colour(_Terminal(), {}, asked_not=True)
    assert not wants_colour(io.StringIO(), {})


def test_each_colour_can_be_read_on_light_and_on_dark() -> None:
    assert not any(
        colour in look for look in LOOKS.values() for colour in ("yellow", "cyan", "white")
    )


def test_many_rungs_skipped_for_one_reason_share_a_line() -> None:
    skipped = tuple(
        replace(handmade.GPU, probe=f"rung_{number}", rung=number, says="--only leaves it out")
        for number in range(4)
    )
    lines = text_of(replace(handmade.HEALTHY, ladder=(*skipped, handmade.GLOO))).splitlines()
    assert " skipped  rung_0, rung_1, rung_2, rung_3: --only leaves it out" in lines
    assert sum("rung_" in line for line in lines) == 1


def test_the_same_verification_is_said_once() -> None:
    cause = handmade.HUNG.causes[0]
    fixes = tuple(
        replace(cause.fixes[0], verify="trainprobe diagnose -- train.py") for _ in range(3)
    )
    text = text_of(replace(handmade.HUNG, causes=(replace(cause, fixes=fixes),)))
    assert text.count("then: trainprobe diagnose -- train.py") == 1
