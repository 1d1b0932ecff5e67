"""The user's lines that a report shows: the guilty one last, and how it was reached."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.waits.live_rows import CELL, MAIN, facts_of, job, own, rank, site
from trainprobe.facts import RankException, Samples, Spell
from trainprobe.model.diagnosis import PlacedCause
from trainprobe.stacks.frames import Frame
from trainprobe.waits.excerpts import excerpts

CAUSE = PlacedCause("rank-stuck", "stuck", 0.9, 13, named=True, ranks=(1,))
CALLER = Frame("train", "/job/train.py", 60)
STOOD = (MAIN, CALLER, Frame("wait", "/job/train.py", 31))
SITES = (
    site(60, "wait(path)", ("def", "def train():"), ("if", "if step == 5:")),
    site(31, "time.sleep(1)", ("def", "def wait(path):"), ("while", "while not ready:")),
)


def test_the_guilty_line_is_last_below_what_encloses_it_and_the_call_that_led_there() -> None:
    facts = facts_of(job(2), rank(0, age_s=30.0), rank(1, STOOD, STOOD), *SITES)
    (shown,) = excerpts(facts, [CAUSE], [CELL])
    assert (shown["group"], shown["who"]) == (0, "rank 1")
    assert [(row["line"], row["text"], row["depth"]) for row in shown["lines"]] == [
        (59, "if step == 5:", 1),
        (60, "wait(path)", 2),
        (30, "def wait(path):", 0),
        (30, "while not ready:", 1),
        (31, "time.sleep(1)", 2),
    ]
    assert [row["line"] for row in shown["lines"] if row.get("guilty")] == [31]


def test_without_the_text_of_the_guilty_line_nothing_is_shown() -> None:
    facts = facts_of(job(2), rank(1, STOOD, STOOD), SITES[0])
    assert excerpts(facts, [CAUSE], [CELL]) == []
    assert excerpts(facts, [CAUSE], ["another"]) == []
    assert excerpts(facts, [replace(CAUSE, ranks=())], [CELL]) == []


def test_a_traceback_brings_its_own_text_and_counts_before_where_the_rank_stands() -> None:
    frames = (MAIN, Frame("step", "/job/train.py", 7, text="  batch['label']"))
    error = RankException(("E3",), CELL, 1, type="KeyError", message="'label'", frames=frames)
    facts = facts_of(job(2), rank(1, own("wait", 31)), *SITES, error)
    (shown,) = excerpts(facts, [CAUSE], [CELL])
    assert [row["text"] for row in shown["lines"]] == ["batch['label']"]
    echo = replace(error, echo=True)
    (shown,) = excerpts(facts_of(job(2), rank(1, STOOD, STOOD), *SITES, echo), [CAUSE], [CELL])
    assert shown["lines"][-1]["line"] == 31


def test_each_group_has_one_excerpt_that_of_its_first_cause() -> None:
    facts = facts_of(job(2), rank(1, STOOD, STOOD), *SITES)
    second = replace(CAUSE, id="straggler-rank", ranks=(0,))
    assert len(excerpts(facts, [CAUSE, second], [CELL])) == 1


def test_the_line_that_the_cause_names_is_shown_where_its_rank_was_met_in_samples_alone() -> None:
    met = Samples(("E4",), CELL, 1, pid=101, spells=(Spell(0.0, 2.0, STOOD, "python-run"),))
    facts = facts_of(job(2), rank(1, own("step", 5), own("step", 5)), *SITES, met)
    slow = replace(CAUSE, summary="Rank 1 works alone at train.py:60 in train again and again")
    (shown,) = excerpts(facts, [slow], [CELL])
    assert shown["lines"][-1]["line"] == 60
