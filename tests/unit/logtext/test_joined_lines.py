"""Lines that are several lines, and lines that are parts of one."""

from __future__ import annotations

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.logtext.joined_lines import split_joined
from trainprobe.logtext.plain import plain_states
from trainprobe.logtext.prefixes import read_prefixes
from trainprobe.logtext.wrapped_lines import rejoined, wrap_width

BAR = "Epoch 0:   6%|██        | 32/500 [06:28<94:39,  1.37it/s, loss=2.6]"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            f"{BAR}[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog",
            [BAR, "[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog"],
        ),
        (
            f"{BAR}slurmstepd: error: *** STEP 6.0 ON node7",
            [BAR, "slurmstepd: error: *** STEP 6.0 ON node7"],
        ),
        (
            "loadingslurmstepd-node7: error: *** STEP 6.0 ON node7",
            ["loading", "slurmstepd-node7: error: *** STEP 6.0 ON node7"],
        ),
        (f"{BAR}Traceback (most recent call last):", [BAR, "Traceback (most recent call last):"]),
        (
            "  0%|   | 0/10 [00:00<?, ?it/s]/a/b.py:12: UserWarning: hm",
            ["  0%|   | 0/10 [00:00<?, ?it/s]", "/a/b.py:12: UserWarning: hm"],
        ),
        (
            "hello[rank1]:[E1119 13:21:12.512786305 ProcessGroupNCCL.cpp:616] no",
            ["hello", "[rank1]:[E1119 13:21:12.512786305 ProcessGroupNCCL.cpp:616] no"],
        ),
        (
            "RuntimeError: no[rank2]: Traceback (most recent call last):",
            ["RuntimeError: no", "[rank2]: Traceback (most recent call last):"],
        ),
        (
            "loadingsrun: error: node7: task 3: Killed",
            ["loading", "srun: error: node7: task 3: Killed"],
        ),
    ],
)
def test_joined_lines_are_split(line: str, parts: list[str]) -> None:
    assert split_joined(line) == parts


@pytest.mark.parametrize(
    "line",
    [
        BAR,
        "",
        "[rank3]:[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog",
        "[default1]:[rank1]: hello",
        "[1,3]<stderr>:[rank3]: hello",
        "[pod/w-1/pytorch] [rank1]: hello",
        "the key '[rank3]:' is taken",
        "x=[rank3]: 1",
        "Traceback (most recent call last):",
        "[rank0]: Traceback (most recent call last):",
        "log: Traceback (most recent call last): it said",
        '{"step": 1, "loss": 2.0}',
        "the message srun: error: is printed",
    ],
)
def test_what_belongs_together_stays(line: str) -> None:
    assert split_joined(line) == [line]


def test_a_flattened_traceback() -> None:
    line = (
        '[rank3]: Traceback (most recent call last): File "/a/b.py", line 110, in resolve result ='
        ' get(future) File "/a/c.py", line 22, in wrapper return fn(*args) ValueError: no During'
        " handling of the above exception, another exception occurred: Traceback (most recent call"
        ' last): File "/a/d.py", line 3, in <module> go() my.pkg.OtherError: worse'
    )
    said = [read_prefixes(part) for part in split_joined(line)]
    assert {one.rank for one in said} == {3}
    assert [one.rest for one in said] == [
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 110, in resolve',
        "    result = get(future)",
        '  File "/a/c.py", line 22, in wrapper',
        "    return fn(*args)",
        "ValueError: no",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "/a/d.py", line 3, in <module>',
        "    go()",
        "my.pkg.OtherError: worse",
    ]


def test_a_traceback_in_json() -> None:
    line = (
        r'{"level": "error", "message": "it broke", "exc_info": "Traceback (most recent call'
        r' last):\n  File \"/a.py\", line 3, in f\n    x()\nValueError: no", "timestamp":'
        r' "2024-11-21T10:11:12Z"}'
    )
    assert [read_prefixes(state).rest for state in plain_states(line)] == [
        "it broke",
        "Traceback (most recent call last):",
        '  File "/a.py", line 3, in f',
        "    x()",
        "ValueError: no",
    ]


TEXT = [
    (
        "[rank3]:[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught"
        " collective operation timeout: it ran for a long time before it gave up"
    ),
    "hello",
    "Traceback (most recent call last):",
    (
        "  File"
        ' "/a/very/long/path/to/some/environment/lib/python3.11/site-packages/some/package/module_with_a_long_name.py",'
        " line 110, in resolve"
    ),
    (
        "RuntimeError: a sentence that tells at great length what has gone wrong, and where, and"
        " what could be done against it if there were time"
    ),
    "short",
    (
        "[rank4]:[E1121 10:11:12.345678 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught"
        " collective operation timeout: it ran for a long time before it gave up"
    ),
]


@pytest.mark.parametrize("width", [80, 100, 116])
@pytest.mark.parametrize("padded", [False, True])
def test_a_text_broken_by_a_terminal_is_whole_again(width: int, padded: bool) -> None:
    broken = [line[at : at + width] for line in TEXT for at in range(0, len(line), width)]
    if padded:
        broken = [line.ljust(width) for line in broken]
    assert [text.rstrip() for _, text in rejoined(broken)] == TEXT


@pytest.mark.parametrize(
    "lines",
    [
        TEXT,
        [],
        ["short", "lines"],
        textwrap.wrap(
            "words that somebody wrote with an editor that breaks lines between words and not after"
            " a number of signs, as people do " * 5,
            79,
        ),
        ["=" * 80, "train.py FAILED", "-" * 80, "Failures:", "=" * 80],
        ["| a table of a fixed width is no broken text, whatever its width may be, you see |"] * 6,
    ],
)
def test_what_was_not_broken_is_left_alone(lines: list[str]) -> None:
    assert wrap_width(lines) == 0
    assert [text for _, text in rejoined(lines)] == lines


@given(st.text(max_size=300))
def test_nothing_is_lost(text: str) -> None:
    parts = split_joined(text)
    assert parts
    if "Traceback" not in text:
        assert "".join(parts) == text


@pytest.mark.parametrize(
    "unit",
    [
        "1%|",
        "[rank1]:",
        'File "a", line 1, in f ',
        "Traceback (most recent call last): ",
        "Error ",
        "\\n",
        "srun: error: ",
        "a.B",
        "1%| | 1/2 [0<0,]",
    ],
)
def test_no_line_takes_long(unit: str) -> None:
    began = time.process_time()
    split_joined("Traceback (most recent call last):" + unit * (100_000 // len(unit)))
    split_joined(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 1.5


def test_a_table_of_equal_lines_is_not_joined() -> None:
    rows = [
        f"{{'loss': 0.{n:03d}, 'grad_norm': 1.25, 'learning_rate': 1.{n:03d}e-05, 'epoch':"
        f" 0.{n:03d}}}"
        for n in range(20)
    ]
    assert wrap_width(rows) == 0
    assert [line for _, line in rejoined(rows)] == rows
