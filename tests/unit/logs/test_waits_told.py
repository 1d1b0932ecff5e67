"""Logs that say that they wait: in any words, again and again, by a launcher's Ctrl-C or a watchdog."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain


def explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])


WAITING = "12:00:{0}0 [ctl] broker not ready, 3 of 8 workers registered\n"


def test_the_same_wait_again_and_again_is_a_hang(tmp_path: Path) -> None:
    report = explained(tmp_path, "12:00:00 up\n" + "".join(map(WAITING.format, range(1, 5))))

    assert report.verdict == "hung"
    first = report.causes[0]
    assert (first.id, [one.id for one in first.classes][:1]) == ("unknown", ["says-it-waits"])


@pytest.mark.parametrize(
    "text",
    [
        WAITING.format(1),  # said once
        WAITING.format(1) + WAITING.format(2) + "12:00:30 all came\n12:00:31 go\n12:00:32 on\n",
        "done waiting for the lock\n" * 3,
        "12:00:01 8/8 workers up\n12:00:09 8/8 workers up\n",
        "12:00:01.1 rank 0 not ready for fp8\n12:00:01.2 rank 1 not ready for fp8\n",
        "one line\nThis can potentially cause a hang if the mapping is wrong\n",
        "one line\n^C\n",
        "step 1 loss 3.0 waiting for data 0.1 s\nstep 2 loss 2.9 waiting for data 0.1 s\n",
    ],
)
def test_no_wait_is_guessed(text: str, tmp_path: Path) -> None:
    assert not explained(tmp_path, text).causes


def test_ctrl_c_at_the_launcher_is_no_end_from_outside(tmp_path: Path) -> None:
    """Signal 2 is a pressed Ctrl-C, 15 comes from a scheduler."""
    text = (
        "step 400 loss 0.41\n"
        "W0616 16:14:04.056 37 torch/distributed/elastic/agent/server/api.py:739] Received {0} death"
        " signal, shutting down workers\n"
        "W0616 16:14:04.059 37 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process"
        " 40 closing signal {1}\n"
    )
    pressed, ended = (
        explained(tmp_path, text.format(*signal)) for signal in ((2, "SIGINT"), (15, "SIGTERM"))
    )

    assert (pressed.verdict, pressed.causes[0].id) == ("hung", "unknown")
    assert ended.causes[0].id == "preempted-or-hangup"


@pytest.mark.parametrize(
    "line",
    [
        (
            "[rank2]:[E704 13:48:58.2 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 2]"
            " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"
        ),
        "[2031-03-09 00:57:15 TP4] Watchdog timeout (self.watchdog_timeout=300)",
    ],
)
def test_a_watchdog_that_saw_no_progress_tells_of_a_hang(line: str, tmp_path: Path) -> None:
    assert explained(tmp_path, f"{line}\n").verdict == "hung"


def test_who_is_killed_with_all_others_was_not_short_of_memory(tmp_path: Path) -> None:
    said = (
        "[2031-03-09 00:57:15 TP4] Watchdog timeout (self.watchdog_timeout=300)\n"
        "[2031-03-09 00:57:20] Received sigquit from a child process. It usually means the child"
        " failed.\nKilled\n"
    )
    report = explained(tmp_path, said)

    assert (report.verdict, report.causes[0].id) == ("hung", "unknown")


def test_one_rank_that_tells_its_calls_shows_no_mismatch(tmp_path: Path) -> None:
    """Under DETAIL each rank prints the finger print of each call."""
    said = (
        "[I ProcessGroupWrapper.cpp:562] [Rank 0] Running collective: CollectiveFingerPrint("
        "SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float)\n"
        "alpha:7:8 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 busId 65 - Init COMPLETE\n"
    )
    report = explained(tmp_path, said)

    assert "collective-shape-mismatch" not in {cause.id for cause in report.causes}


CUT = """  File "train.py", line 58, in train
    for batch in loader:
  File "/opt/lib/python3.9/site-packages/torch/utils/data/dataloader.py", line 435, in __next__
    data = self._next_data()
  File "/opt/lib/python3.9/site-packages/torch/utils/data/dataloader.py", line 872, in _try_get_data
    data = self._data_queue.get(timeout=timeout)
  File "/opt/lib/python3.9/multiprocessing/queues.py", line 104, in get
    if timeout < 0 or not self._poll(timeout):
"""


def test_what_is_left_of_a_traceback_shows_where_it_waited(tmp_path: Path) -> None:
    report = explained(tmp_path, CUT)

    assert (report.verdict, report.causes[0].id) == ("hung", "data-worker-stuck")
    assert not explained(tmp_path, CUT.replace("get(timeout", "put(timeout")[:160]).causes


def test_a_traceback_that_lost_its_blanks_is_read(tmp_path: Path) -> None:
    text = (
        "Traceback (most recent call last):\n"
        'File "/w/train.py", line 14, in <module>\nmain()\n'
        'File "/w/train.py", line 9, in main\nrun()\n'
        'File "/w/train.py", line 5, in run\nreturn table[key]\n'
        'File "/w/train.py", line 4, in get\nreturn rows[key]\n'
        'File "/w/train.py", line 3, in row\nreturn one[key]\n'
        'File "/w/train.py", line 2, in one\nreturn self.data[key]\n'
        'File "/w/train.py", line 1, in data\nreturn inner[key]\n'
        "KeyError: 7\n"
    )
    report = explained(tmp_path, text)

    assert report.causes[0].id == "user-exception"


def test_one_saved_stack_locates_and_names_nothing(tmp_path: Path) -> None:
    text = (
        "Process 41: python -u job.py\nPython v3.12.1 (/usr/bin/python3.12)\n\n"
        'Thread 41 (idle): "MainThread"\n    main (src/job.py:389)\n    <module> (job.py:40)\n'
    )
    report = explained(tmp_path, text)

    assert (report.verdict, report.causes[0].id) == ("undetermined", "unknown")
    assert "job.py:389" in report.causes[0].summary


@pytest.mark.parametrize(
    ("remark", "verdict"),
    [
        ("------> hangs at this line for 10min", "hung"),
        ("  <== stuck here", "hung"),
        ("--> hangs: 0", "undetermined"),
        ("------> this may hang", "undetermined"),
    ],
)
def test_a_remark_behind_the_last_line_is_its_readers_word(
    remark: str, verdict: str, tmp_path: Path
) -> None:
    line = f"Training epoch 0, iteration 0/241 | lr: 4.9e-07 | train_loss: 2.578 {remark}\n"
    assert explained(tmp_path, line + ".....\n").verdict == verdict


def test_workers_that_no_node_can_take_are_awaited_for_ever(tmp_path: Path) -> None:
    text = "".join(
        f"(autoscaler +{after}s) Error: No available node types can fulfill resource request"
        " {'CPU': 8.0, 'GPU': 8.0}. Add suitable node types to this cluster.\n"
        for after in (34, 69)
    )
    report = explained(tmp_path, "started a local Ray instance\n" + text)
    assert (report.verdict, report.causes[0].id) == ("hung", "world-size-mismatch")
    assert report.causes[0].fixes[0].steps == ("ray status",)


SILENT = "(VllmWorkerProcess pid=12) WARNING 01-01 10:0{0}:00 shm_broadcast.py:386] {1}\n"


@pytest.mark.parametrize(("times", "verdict"), [(4, "hung"), (1, "undetermined")])
def test_an_engine_whose_workers_are_silent_says_so_as_a_warning(
    times: int, verdict: str, tmp_path: Path
) -> None:
    words = "No available block found in 60 second."
    text = "".join(SILENT.format(minute, words) for minute in range(1, times + 1))
    report = explained(tmp_path, "loaded weights\n" + text)
    assert report.verdict == verdict
    assert "rank-compiling" in [one.id for one in report.causes]
