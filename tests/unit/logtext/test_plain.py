"""Raw lines as a reader sees them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.plain import plain, plain_states


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("a plain line\n", "a plain line"),
        ("windows\r\n", "windows"),
        ("\x1b[31mRuntimeError\x1b[0m: no\n", "RuntimeError: no"),
        ("\x1b[38;5;196mred\x1b[m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice string\x1b\\text", "text"),
        ("\x9b1mbold\x9b0m", "bold"),
        ("\x1b(Btext\x1b[A", "text"),
        ("[36m(RayTrainWorker pid=7)[0m hello", "(RayTrainWorker pid=7) hello"),
        ("^[[32mok^[[0m", "ok"),
        (r"\x1b[31mbad\x1b[0m", "bad"),
        (r"\u001b[31mbad\u001b[0m", "bad"),
        ("#033[1;31mbad#033[0m", "bad"),
        ("ab\b\bcd", "cd"),
        ("\b\bcd", "cd"),
        ("nul\x00l bell\x07", "null bell"),
        ("zero\u200bwidth\ufeff \u202eright to left\u202c", "zerowidth right to left"),
        ("no\u00a0break\u2028line", "no break line"),
        ("tab\tstays", "tab\tstays"),
        ("half \ud800 a pair", "half \ufffd a pair"),
        (
            " 10%|#  | 1/10 [00:01<00:09]\r 20%|## | 2/10 [00:02<00:08]\r",
            " 20%|## | 2/10 [00:02<00:08]",
        ),
        ("", ""),
        (
            '{"log":"hello\\n","stream":"stderr","time":"2024-11-21T10:00:00.5Z"}',
            "2024-11-21T10:00:00.5Z hello",
        ),
        (
            "  File &quot;a.py&quot;, line 3, in &lt;module&gt;",
            '  File "a.py", line 3, in <module>',
        ),
        ("    main()              \u2502", "    main()"),
        ("\u2502 /job/a.py:4 in main \u2502", "\u2502 /job/a.py:4 in main \u2502"),
        ("[rank0]: \u2502 x = 1 \u2502", "[rank0]: \u2502 x = 1 \u2502"),
        ("a &amp;&amp; b &copy;", "a && b &copy;"),
        ('{"log":"half', '{"log":"half'),
    ],
)
def test_a_line_without_decoration(raw: str, seen: str) -> None:
    assert plain(raw) == seen


@pytest.mark.parametrize(
    "line",
    [
        "took [3m 20s]",
        "[rank3]: hello",
        "shape [1, 2]",
        "[5m]",
        "x[0]m",
        "a[12mb"[:1] + " [E1121 10:11:12.5 File.cpp:6]",
        "größer 日本",
    ],
)
def test_what_only_looks_like_a_colour_stays(line: str) -> None:
    assert plain(line) == line


def test_an_error_overwritten_by_a_bar_is_kept() -> None:
    raw = (
        " 10%|#  | 1/10 [00:01<00:09]\rRuntimeError: CUDA out of memory\r 20%|## | 2/10"
        " [00:02<00:08]\r 30%|###| 3/10 [00:03<00:07]"
    )
    assert plain(raw) == "RuntimeError: CUDA out of memory"
    assert plain_states(raw) == ["RuntimeError: CUDA out of memory", " 30%|###| 3/10 [00:03<00:07]"]


def test_an_error_behind_a_bar_is_what_is_seen() -> None:
    assert (
        plain(" 10%|#  | 1/10 [00:01<00:09]\rTraceback (most recent call last):")
        == "Traceback (most recent call last):"
    )


def test_a_counter_shows_its_last_state() -> None:
    assert plain_states("step 1 loss 3.2\rstep 2 loss 3.1\rstep 30 loss 2.5") == [
        "step 30 loss 2.5"
    ]


@given(st.text(max_size=300))
def test_any_text_becomes_one_visible_line(text: str) -> None:
    seen = plain(text.replace("\n", " "))
    assert "\x1b" not in seen
    assert "\r" not in seen
    assert all(
        character.isprintable() or character == "\t" or ord(character) > 0x7F for character in seen
    )


@pytest.mark.parametrize(
    "unit", ["\x1b[", "\x1b]", "\b", "\r1%", "[0;", "\x9b;", '{"log":"', "\x1bP"]
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    plain(unit * (300_000 // len(unit)))
    assert time.process_time() - began < 2.0
