"""Stack dumps in the words of four tools."""

from __future__ import annotations

import random

import pytest

from tests.unit.recorder.stacks import ELSEWHERE, FORMS, IN_ALL_REDUCE, faulthandler, py_spy
from trainprobe.stacks.stack_text import parse_stack_text


@pytest.mark.parametrize("form", ["py_spy", "faulthandler", "pystack", "gdb"])
def test_the_main_thread_and_its_frames_are_found(form: str) -> None:
    found = parse_stack_text(FORMS[form](4242, IN_ALL_REDUCE))
    assert len(found) == 1
    main = next(thread for thread in found[0].threads if thread["name"] == "MainThread")
    assert found[0].native == (form == "gdb")
    assert found[0].pid == (
        None if form == "faulthandler" else 4242
    )  # faulthandler names threads only by their address
    if form == "gdb":
        assert [frame["name"] for frame in main["frames"]] == [
            "c10d::Work::wait",
            "_PyEval_EvalFrameDefault",
        ]
        assert main["frames"][1]["file"] == "Python/ceval.c"
    else:
        assert [(frame["name"], frame["line"]) for frame in main["frames"]] == [
            ("all_reduce", 3252),
            ("reduce_loss", 22),
            ("<module>", 91),
        ]


def test_short_paths_still_tell_whose_code_it_is() -> None:
    from trainprobe.stacks.frames import Frame
    from trainprobe.stacks.places import is_standard, is_torch, is_user

    threads = parse_stack_text(py_spy(1, IN_ALL_REDUCE))[0].threads
    frames = [
        Frame(frame["name"], frame["file"], frame["line"])
        for thread in threads
        for frame in thread["frames"]
    ]
    assert [is_torch(frame) for frame in frames] == [True, False, False, False, False]
    assert [is_user(frame) for frame in frames] == [False, True, True, False, False]
    assert [is_standard(frame) for frame in frames] == [False, False, False, True, True]


def test_the_same_thread_again_is_another_look() -> None:
    found = parse_stack_text(faulthandler(5, IN_ALL_REDUCE) + faulthandler(5, ELSEWHERE))
    assert [
        next(
            thread["frames"][0]["name"] for thread in one.threads if thread["name"] == "MainThread"
        )
        for one in found
    ] == ["all_reduce", "load_next"]


def test_sections_of_the_debug_server_name_the_rank() -> None:
    text = "".join(
        f"=== Rank {rank}: http://node{rank}:4000 ===\n{py_spy(100 + rank, IN_ALL_REDUCE)}\n"
        for rank in (3, 1)
    )
    assert [(one.rank, one.pid) for one in parse_stack_text(text)] == [(3, 103), (1, 101)]


def test_workers_in_the_same_text_are_told_apart() -> None:
    worker = [
        (
            "_worker_loop",
            f"{'/opt/venv/lib/python3.11/site-packages'}/torch/utils/data/_utils/worker.py",
            340,
        )
    ]
    found = parse_stack_text(py_spy(10, IN_ALL_REDUCE) + py_spy(11, worker))
    assert [(one.pid, one.is_worker) for one in found] == [(10, False), (11, True)]


def test_frames_without_the_line_of_their_thread_are_a_stack_and_may_tell_their_rank() -> None:
    text = """
rank 1 hangs here:
  1. wait (threading.py:320)
  2. get (queue.py:171)
     ...
  3. next_batch (train.py:40)

TP2
all_reduce (torch/distributed/distributed_c10d.py:3075)
step (train.py:88)
"""
    found = parse_stack_text(text)
    assert [one.rank for one in found] == [1, 2]
    assert [[frame["name"] for frame in one.threads[0]["frames"]] for one in found] == [
        ["wait", "get", "next_batch"],
        ["all_reduce", "step"],
    ]


def test_the_command_or_the_line_above_names_the_rank_of_a_process() -> None:
    first = py_spy(7, IN_ALL_REDUCE).replace("Process 7:", "Process 7: VLLM::Worker_TP3 ", 1)
    second = "and this is rank 5:\n" + py_spy(8, IN_ALL_REDUCE)
    assert [(one.rank, one.pid) for one in parse_stack_text(first + second)] == [(3, 7), (5, 8)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step 1\nstep 2\n",
        "Thread 5 (idle)\n",
        "\x00\x1b[31m" * 2000,
        "Process 5: x\n" * 3000,
        "    f (a.py:3)\n" * 100,
    ],
)
def test_what_is_no_stack_dump_gives_nothing(text: str) -> None:
    assert parse_stack_text(text) == []


def test_control_characters_and_broken_lines_never_crash() -> None:
    chance = random.Random(3)
    for form in FORMS.values():
        whole = form(77, ELSEWHERE)
        for _ in range(200):
            place = chance.randrange(len(whole))
            parse_stack_text(
                whole[:place]
                + chance.choice(["\x1b[2J", "\x00", "(" * 50, "\n", "\u202e", "9" * 400])
                + whole[place + chance.randint(0, 30) :]
            )
