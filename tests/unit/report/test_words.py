"""Rank sets, durations, certainty and cleaning."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.model.ranks import fold_ranks, name_ranks
from trainprobe.report.phrases import (
    certainty,
    clean,
    columns,
    duration,
    percent,
)


@pytest.mark.parametrize(
    ("ranks", "folded"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1, 2, 4, 5, 6, 7), "0-2,4-7"),
        ((5, 0, 5), "0,5"),
        ((1, 0), "0-1"),
    ],
)
def test_fold(ranks: tuple[int, ...], folded: str) -> None:
    assert fold_ranks(ranks) == folded


@given(st.sets(st.integers(0, 5000)))
def test_folding_loses_no_rank(ranks: AbstractSet[int]) -> None:
    unfolded = set()
    for part in filter(None, fold_ranks(ranks).split(",")):
        first, _, last = part.partition("-")
        unfolded |= set(range(int(first), int(last or first) + 1))
    assert unfolded == ranks


def test_ranks_in_sentences() -> None:
    assert (name_ranks(()), name_ranks((), "the job")) == ("", "the job")
    assert name_ranks((3, 3)) == "rank 3"
    assert name_ranks((4, 3)) == "ranks 3 and 4"
    assert name_ranks((0, 1, 2)) == "ranks 0-2"
    assert name_ranks((0, 1, 2, 5, 7, 8)) == "ranks 0-2, 5, 7 and 8"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.94, "9.9 s"),
        (9.97, "10 s"),
        (59.6, "1 min 00 s"),
        (664, "11 min 04 s"),
        (7500, "2 h 05 min"),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_duration_that_is_none_is_not_made_up(seconds: float) -> None:
    assert duration(seconds) == "an unknown time"


@pytest.mark.parametrize(
    ("confidence", "word", "share"),
    [
        (1.0, "almost certain", ">99 %"),
        (0.95, "almost certain", "95 %"),
        (0.9499, "likely", "94 %"),
        (0.8, "likely", "80 %"),
        (0.6, "leading", "60 %"),
        (0.599, "undecided", "59 %"),
        (0.001, "undecided", "<1 %"),
    ],
)
def test_a_word_is_never_stronger_than_its_number(confidence: float, word: str, share: str) -> None:
    assert certainty(confidence) == word
    assert percent(confidence) == share


def test_a_cause_that_is_not_named_is_undecided_whatever_its_share() -> None:
    assert certainty(0.7, named=False) == "undecided"


@given(st.text(max_size=200))
def test_clean_text_is_one_printable_line(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.isprintable() or all(
        letter.isprintable() or letter.isspace() for letter in cleaned
    )
    assert len(cleaned.splitlines()) <= 1
    assert "\x1b" not in cleaned
    assert columns(cleaned) >= 0


@given(st.text(max_size=200))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
