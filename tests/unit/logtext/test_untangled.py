"""Tracebacks mixed line by line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.interleaved_tracebacks import separate_tracebacks


def _traceback(kind: str, line: int) -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "train.py", line 88, in <module>',
        "    main()",
        f'  File "train.py", line {line}, in main',
        '    loss = model(batch)["loss"]',
        "           ^^^^^^^^^^^^",
        f"{kind}: no",
    ]


FIRST, SECOND = _traceback("KeyError", 42), _traceback("IndexError", 57)


def _whole(lines: list[str]) -> list[str]:
    return [lines[number] for number in separate_tracebacks(lines)]


def test_two_that_take_turns() -> None:
    mixed = [line for pair in zip(FIRST, SECOND, strict=True) for line in pair]
    assert _whole(["loading", *mixed, "[E] bye"]) == ["loading", *FIRST, *SECOND, "[E] bye"]


def test_four_equal_ones_in_any_order() -> None:
    mixed = [line for line in FIRST for _ in range(4)]
    assert _whole(mixed) == FIRST * 4


def test_one_that_begins_in_the_middle_of_another() -> None:
    mixed = [
        *FIRST[:3],
        SECOND[0],
        FIRST[3],
        SECOND[1],
        FIRST[4],
        SECOND[2],
        FIRST[5],
        SECOND[3],
        FIRST[6],
        *SECOND[4:],
    ]
    assert _whole(mixed) == [*FIRST, *SECOND]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["hello"],
        FIRST,
        [*FIRST, *SECOND],
        [
            *FIRST,
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            *SECOND,
        ],
        ["Traceback (most recent call last):", "  hello"],
        ["Traceback (most recent call last):", "Traceback (most recent call last):"],
    ],
)
def test_what_is_not_mixed_keeps_its_order(lines: list[str]) -> None:
    assert separate_tracebacks(lines) == list(range(len(lines)))


@given(st.lists(st.sampled_from([*FIRST, *SECOND, "", "hello", "x = 3"]), max_size=60))
def test_no_line_is_lost(lines: list[str]) -> None:
    assert sorted(separate_tracebacks(lines)) == list(range(len(lines)))


def test_it_is_fast() -> None:
    began = time.process_time()
    separate_tracebacks(["Traceback (most recent call last):"] * 20_000)
    separate_tracebacks(
        [
            *["Traceback (most recent call last):"] * 50,
            *['  File "a.py", line 3, in f', "    x()"] * 5000,
        ]
    )
    assert time.process_time() - began < 2.0
