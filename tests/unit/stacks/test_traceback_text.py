"""Tracebacks in printed text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.logtext.streams import rank_and_rest, split_ranks
from trainprobe.stacks.traceback_text import NAME_CUT_OFF, parse_tracebacks

KEY_ERROR = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 53, in <module>
[rank1]:     main()
[rank1]:   File "/job/train.py", line 25, in <listcomp>
[rank1]:     labels = torch.stack([row["label"] for row in rows])
[rank1]:                           ~~~^^^^^^^^^
[rank1]: KeyError: 'label'
"""
FROM_A_WORKER = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    for batch in loader:
  File "/env/lib/python3.11/site-packages/torch/_utils.py", line 750, in reraise
    raise exception
IndexError: Caught IndexError in DataLoader worker process 3.
Original Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(index)
  File "/job/data.py", line 14, in __getitem__
    return self.rows[index]
IndexError: list index out of range

"""
CHAINED = """\
Traceback (most recent call last):
  File "/job/data.py", line 4, in read
    return table[name]
KeyError: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/job/train.py", line 9, in main
    read("x")
  File "/job/data.py", line 6, in read
    raise BadSample("no x") from error
job.data.BadSample: no x
"""
GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/job/train.py", line 3, in <module>
  |     run()
  | ExceptionGroup: loaders (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/job/data.py", line 7, in load
    |     raise ValueError("torn")
    | ValueError: torn
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/job/data.py", line 8, in load
    |     raise OSError("gone")
    | OSError: gone
    +------------------------------------
"""


def test_a_traceback_behind_rank_prefixes() -> None:
    lines = split_ranks(KEY_ERROR)
    assert list(lines) == [1]
    (raised,) = parse_tracebacks(lines[1])[0].chain
    assert (raised.type, raised.message) == ("KeyError", "'label'")
    assert [(frame.base, frame.line, frame.name) for frame in raised.frames] == [
        ("train.py", 53, "<module>"),
        ("train.py", 25, "<listcomp>"),
    ]
    assert raised.frames[1].text.startswith("labels = torch.stack")


def test_the_rank_of_the_job_wins_over_the_one_of_the_node() -> None:
    assert rank_and_rest("[default0]:[rank8]: ValueError: x") == (8, "ValueError: x")
    assert rank_and_rest("[default3]:plain") == (3, "plain")
    assert rank_and_rest("[step12]: loss 3") == (None, "[step12]: loss 3")


def test_a_worker_s_exception_is_its_own() -> None:
    (raised,) = parse_tracebacks(FROM_A_WORKER.splitlines())[0].chain
    assert (raised.type, raised.message, raised.worker) == (
        "IndexError",
        "list index out of range",
        3,
    )
    assert raised.frames[-1].where == "data.py:14 in __getitem__"
    assert raised.wrapper.startswith("Caught IndexError")


def test_a_chain_is_in_the_order_of_time() -> None:
    (printed,) = parse_tracebacks(CHAINED.splitlines())
    assert [raised.type for raised in printed.chain] == ["KeyError", "job.data.BadSample"]
    assert [raised.message for raised in printed.chain] == ["'x'", "no x"]
    assert printed.handled_one is False


def test_an_exception_raised_while_another_was_handled() -> None:
    text = CHAINED.replace(
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    )
    (printed,) = parse_tracebacks(text.splitlines())
    assert printed.handled_one is True
    assert len(printed.chain) == 2


def test_the_first_member_of_a_group_is_its_root() -> None:
    (printed,) = parse_tracebacks(GROUP.splitlines())
    assert [raised.type for raised in printed.chain] == ["ValueError", "ExceptionGroup"]
    assert printed.chain[0].frames[0].where == "data.py:7 in load"


def test_messages_of_several_lines_end_where_another_kind_of_line_begins() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nValueError:'
        " one\ntwo\n\nthree\nFatal Python error: Aborted\n"
    )
    (raised,) = parse_tracebacks(text.splitlines())[0].chain
    assert raised.message == "one\ntwo\n\nthree"
    long = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nValueError: '
        + "x" * 9000
    )
    assert len(parse_tracebacks(long.splitlines())[0].chain[0].message) == 2000


def test_threads_and_what_python_ignores_are_told_apart() -> None:
    body = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    f()\nOSError: gone\n'
    )
    printed = parse_tracebacks(
        f"Exception in thread Thread-3 (f):\n{body}Exception ignored in: <function"
        f" A.__del__>\n{body}".splitlines()
    )
    assert [(one.thread, one.ignored) for one in printed] == [
        ("Thread-3 (f)", False),
        ("MainThread", True),
    ]


def test_lines_of_another_process_in_between_do_not_end_a_traceback() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n[W1 warning] from'
        ' elsewhere\n  File "/b.py", line 2, in g\nValueError: x\n'
    )
    (printed,) = parse_tracebacks(text.splitlines())
    assert [frame.base for frame in printed.chain[0].frames] == ["a.py", "b.py"]


def test_a_torn_traceback_is_no_exception() -> None:
    assert (
        parse_tracebacks(["Traceback (most recent call last):", '  File "/a.py", line 1, in f'])
        == []
    )


@pytest.mark.parametrize("blanks", ["  ", ""])
@pytest.mark.parametrize("source", [True, False])
def test_a_traceback_inside_which_the_text_ends_was_raised(blanks: str, source: bool) -> None:
    lines = ["Traceback (most recent call last):"]
    for name in ("<module>", "main", "fit"):
        at = "" if name == "<module>" and not blanks else f" {name}"  # taken for a tag
        lines += [f'{blanks}File "/job/train.py", line 4, in{at}', f"{blanks * 2}{name}_(x)"]

    (printed,) = parse_tracebacks(lines if source else lines[:-1])

    assert printed.chain[0].type == NAME_CUT_OFF
    assert [frame.name for frame in printed.chain[0].frames] == ["<module>", "main", "fit"]


PIECES = [
    "Traceback (most recent call last):",
    '  File "/a.py", line 3, in f',
    "ValueError: Caught KeyError in DataLoader worker process 0.",
    "Original Traceback (most recent call last):",
]
PIECES += [
    "  | Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
    "    ^^^^",
    "",
    "KeyError: 'x'",
    "    raise x",
]
PIECES += [
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
    "[rank1]: Traceback (most recent call last):",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=40))
def test_no_text_breaks_the_parser(lines: list[str]) -> None:
    for of_rank in split_ranks("\n".join(lines)).values():
        for printed in parse_tracebacks(of_rank):
            assert printed.chain
            assert all(raised.type and len(raised.message) <= 2000 for raised in printed.chain)


def test_deep_nesting_of_worker_messages_is_cut() -> None:
    text = (
        "Original Traceback (most recent call last):\nKeyError: Caught KeyError in DataLoader"
        " worker process 0.\n" * 3000
    )
    printed = parse_tracebacks(
        (
            "Traceback (most recent call last):\nKeyError: Caught KeyError in DataLoader worker"
            " process 0.\n" + text
        ).splitlines()
    )
    assert printed[0].chain[0].type == "KeyError"


def test_the_process_of_multiprocessing_that_ended_with_it_is_kept() -> None:
    lines = [
        "step 7",
        "Process reader-2:",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap',
        "    self.run()",
        '  File "/job/reader.py", line 19, in read',
        "    row['caption']",
        "KeyError: 'caption'",
    ]
    (printed,) = parse_tracebacks(lines)
    assert (printed.process, printed.chain[0].type) == ("reader-2", "KeyError")


def test_a_traceback_cut_in_its_raise_still_names_the_exception() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 25, in main\n'
        "    prefix = shared()\n"
        '  File "/env/lib/python3.11/site-packages/streaming/shared.py", line 340, in shared\n'
        "    raise ValueError(f'Reused local dir"
    )
    (printed,) = parse_tracebacks(text.splitlines())
    assert printed.chain[0].type == "ValueError"
    assert printed.chain[0].message == "Reused local dir"
