"""What a dying process prints."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.stacks.faulthandler_text import parse_deaths

SIZES_DIFFER = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at /gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 12 vs 8. Received data size doesn't match expected size.
Fatal Python error: Aborted

Thread 0x00007f31dcc2ab80 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/job/train.py", line 29 in main
  File "/job/train.py", line 38 in <module>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)
"""
NULL_POINTER = """\
Fatal Python error: Segmentation fault

Thread 0x00007f6bf1000000 (most recent call first):
  File "/env/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f6bf1625b80 (most recent call first):
  File "/job/train.py", line 25 in decode
  File "/job/train.py", line 52 in <module>
"""
NEWER = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f6bf1625b80 [python] (most recent call first):
  File "/job/train.py", line 25 in decode
  File "/job/train.py", line 52 in <module>

Current thread's C stack trace (most recent call first):
  Binary file "/env/bin/python3.14", at _Py_DumpStack+0x31 [0x5]
  Binary file "/lib/x86_64-linux-gnu/libc.so.6", at +0x3fdf0 [0x7]
  Binary file "/env/lib/libdecode.so.2", at decode_record+0x10 [0x7]
"""
WHILE_LEAVING = """\
terminate called without an active exception
Fatal Python error: Aborted

Thread 0xFatal Python error: Segmentation fault


Extension modules: torch._C (total: 1)
"""


def test_a_thrown_exception_and_the_abort_after_it_are_one_death() -> None:
    (death,) = parse_deaths(SIZES_DIFFER.splitlines())
    assert (death.signal_name, death.exception, death.from_faulthandler) == (
        "SIGABRT",
        "gloo::EnforceNotMet",
        True,
    )
    assert "12 vs 8" in death.message
    current = death.current()
    assert current is not None
    assert [frame.name for frame in current.frames] == ["<module>", "main", "all_reduce"]
    assert death.extension_modules == ("numpy._core._multiarray_umath", "torch._C")


def test_the_current_thread_is_the_one_that_got_the_signal() -> None:
    (death,) = parse_deaths(NULL_POINTER.splitlines())
    current, main = death.current(), death.main()
    assert current is not None
    assert main is not None
    assert death.signal_name == "SIGSEGV"
    assert [frame.where for frame in current.frames] == [
        "train.py:52 in <module>",
        "train.py:25 in decode",
    ]
    assert main is current


def test_newer_pythons_name_threads_and_libraries() -> None:
    (death,) = parse_deaths(NEWER.splitlines())
    assert [(thread.name, len(thread.frames)) for thread in death.threads] == [("python", 2)]
    assert death.library == "/env/lib/libdecode.so.2"


def test_a_death_while_leaving_is_told_as_such() -> None:
    first = parse_deaths(WHILE_LEAVING.splitlines())[0]
    assert first.without_exception
    assert first.signal_name == "SIGABRT"


def test_bad_alloc_without_faulthandler() -> None:
    (death,) = parse_deaths(
        [
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "  what():  std::bad_alloc",
        ]
    )
    assert (death.exception, death.message, death.from_faulthandler) == (
        "std::bad_alloc",
        "std::bad_alloc",
        False,
    )


def test_an_error_of_the_interpreter_is_an_abort() -> None:
    (death,) = parse_deaths(
        [
            (
                "Fatal Python error: init_fs_encoding: failed to get the Python codec of the "
                "filesystem"
                " encoding"
            )
        ]
    )
    assert death.signal_name == "SIGABRT"
    assert death.message.startswith("init_fs_encoding")


PIECES = [
    *SIZES_DIFFER.splitlines(),
    *NULL_POINTER.splitlines(),
    *NEWER.splitlines(),
    "Thread 0x",
    "  what():",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=40))
def test_no_text_breaks_the_parser(lines: list[str]) -> None:
    for death in parse_deaths(lines):
        assert death.signal_name
        assert len(death.message) <= 2000
