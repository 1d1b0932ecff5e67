"""Stacks inside logs, Ctrl-C on a job that stood still, and a rank that says that it gives up."""

from __future__ import annotations

from pathlib import Path

from tests.unit.waits.logs_by_hand import C10D, SITE, STEPS, traceback, watchdog
from tests.unit.waits.test_logged import explained
from trainprobe.facts.log_stacks import PROCESSES_CAP, parse_log_stacks
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import JOB

TIMED_OUT = (
    "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms"
    " for recv operation to complete"
)
OUTSIDE = '  File "/job/train.py", line 53 in <module>\n'
WAITS = f'  File "{C10D}", line 2800 in all_reduce\n  File "/job/train.py", line 25 in main\n'
SHARD = '  File "/job/data.py", line 9 in wait_for_shard\n  File "/job/train.py", line 22 in main\n'
SPAWNED = (
    '  File "/usr/lib/python3.11/multiprocessing/process.py", line 314 in _bootstrap\n  File'
    ' "<string>", line 1 in <module>\n'
)


def dump(frames: str, *, feeder: bool = False, ends: str = OUTSIDE) -> str:
    other = (
        "Thread 0x00007f6d7e8546c0 (most recent call first):\n  File"
        ' "/usr/lib/python3.11/threading.py", line 327 in wait\n\n'
        if feeder
        else ""
    )
    return (
        f"Timeout (0:00:09)!\n{other}Thread 0x00007f6dab406b80 (most recent call"
        f" first):\n{frames}{ends}"
    )


def late(rank: int) -> str:
    return traceback("RuntimeError", TIMED_OUT, prefix=f"[rank{rank}]: ", leaf=C10D)


def test_of_nameless_dumps_the_one_that_is_in_no_collective_is_the_silent_ranks(
    tmp_path: Path,
) -> None:
    log = (
        STEPS
        + dump(WAITS, feeder=True)
        + dump(SHARD)
        + dump('  File "/job/data.py", line 3 in fill\n', ends=SPAWNED)
        + late(0)
    )
    report = explained({"job.log": log}, tmp_path)
    assert (report.verdict, report.suspects[0].ranks) == ("hung", (1,))
    assert "rank 1" in report.suspects[0].says.lower()
    assert "data.py:9" in report.suspects[0].says
    assert [cause.id for cause in report.causes if cause.named] == ["rank-stuck"]


def test_dumps_alone_tell_who_was_waited_for(tmp_path: Path) -> None:
    prefixed = "".join(
        f"[rank{rank}] {line}\n"
        for rank, frames in ((0, WAITS), (1, SHARD), (2, WAITS))
        for line in dump(frames).splitlines()
    )
    report = explained({"job.log": "[rank0] step 3/90 loss 2.1\n" * 40 + prefixed}, tmp_path)
    assert (report.verdict, report.suspects[0].ranks) == ("hung", (1,))


def test_a_dump_that_steps_followed_is_none_of_a_hang(tmp_path: Path) -> None:
    steps = "".join(f"step {step}/30 loss 1.{step}\n" for step in range(1, 31))
    report = explained(
        {"job.log": "step 0/30 loss 2.0\n" + dump(SHARD) + steps + "training finished\n"}, tmp_path
    )
    assert report.verdict == "healthy"


def test_a_lone_dump_of_a_timer_that_ran_out_is_a_hang_wherever_the_main_thread_stands(
    tmp_path: Path,
) -> None:
    busy = dump(
        '  File "/job/data.py", line 7 in fill\n  File "/job/train.py", line 22 in main\n',
        feeder=True,
    )
    report = explained({"out2.log": busy}, tmp_path)
    assert (report.verdict, report.suspects[0].ranks) == ("hung", (0,))
    assert "data.py:7 in fill when the timer of 9 s ran out" in report.suspects[0].says
    assert not any(
        "attach -" in step
        for cause in report.causes
        for fix in cause.fixes
        for step in (*fix.steps, fix.verify)
    )


def test_a_lone_dump_after_which_the_program_spoke_again_is_none(tmp_path: Path) -> None:
    busy = dump(
        '  File "/job/data.py", line 7 in fill\n  File "/job/train.py", line 22 in main\n',
        feeder=True,
    )
    assert explained({"out2.log": busy + "done after 31 s\n"}, tmp_path).verdict == "undetermined"


def test_a_dying_processs_stack_is_no_dump_of_a_hang() -> None:
    rows = [[1, None, None, "", "Fatal Python error: Segmentation fault"], [2, None, None, "", ""]]
    rows += [
        [number, None, None, "", line]
        for number, line in enumerate(dump(SHARD).splitlines()[1:], start=3)
    ]
    assert (
        parse_log_stacks(
            Evidence("E1", "log.extract", JOB, "job", data={"path": "job.log", "rows": rows})
        )
        == []
    )


def test_many_dumps_are_bounded() -> None:
    rows = [
        [number, None, None, "", line]
        for number, line in enumerate((dump(SHARD) * (PROCESSES_CAP + 40)).splitlines(), start=1)
    ]
    found = parse_log_stacks(
        Evidence("E1", "log.extract", JOB, "job", data={"path": "job.log", "rows": rows})
    )
    assert len(found) == PROCESSES_CAP


def interrupted(rank: int, leaf: str, name: str, line: int) -> str:
    frames = [
        '  File "/job/train.py", line 53, in <module>',
        "    main()",
        f'  File "/job/train.py", line {line}, in main',
        "    step()",
        f'  File "{leaf}", line 90, in {name}',
    ]
    return "".join(
        f"[rank{rank}]: {text}\n"
        for text in ["Traceback (most recent call last):", *frames, "KeyboardInterrupt"]
    )


def test_ctrl_c_on_a_job_that_stood_still_is_a_hang(tmp_path: Path) -> None:
    log = (
        STEPS
        + interrupted(0, C10D, "all_reduce", 25)
        + interrupted(1, "/usr/lib/python3.11/multiprocessing/queues.py", "get", 33)
    )
    report = explained({"job.log": log}, tmp_path)
    assert (report.verdict, report.suspects[0].ranks, report.suspects[0].how) == (
        "hung",
        (1,),
        "never-joined",
    )
    assert "Ctrl-C" in report.suspects[0].says


def test_ctrl_c_on_a_job_at_work_is_no_hang(tmp_path: Path) -> None:
    report = explained(
        {"job.log": STEPS + interrupted(0, f"{SITE}/torch/nn/functional.py", "relu", 25)}, tmp_path
    )
    assert report.verdict == "crashed"


def test_a_rank_that_says_that_it_gives_up_has_left(tmp_path: Path) -> None:
    closed = traceback(
        "RuntimeError", "Connection closed by peer [10.1.0.7]:40312", prefix="[rank0]: ", leaf=C10D
    )
    report = explained(
        {"job.log": STEPS + "[rank1]: no calibration table for this wheel, giving up\n" + closed},
        tmp_path,
    )
    assert (report.causes[0].id, report.causes[0].named, report.causes[0].ranks) == (
        "rank-exited-early",
        True,
        (1,),
    )


STAND = """Process 41234: python train.py
Thread 41234 (idle): "MainThread"
    wait (multiprocessing/popen_fork.py:43)
    join (multiprocessing/process.py:149)
    close (train.py:88)
"""
REDUCES = """all_reduce (torch/distributed/distributed_c10d.py:2501)
  sync (train.py:60)
"""


def test_stacks_pasted_into_a_log_show_who_holds_up_whom(tmp_path: Path) -> None:
    log = f"{STEPS * 12}it hangs. rank 1:\n{STAND}\nand rank 0:\n{REDUCES}\nnothing more\n"
    report = explained({"job.log": log}, tmp_path)
    assert (report.verdict, report.suspects[0].ranks) == ("hung", (1,))
    assert "train.py:88" in report.suspects[0].says


def test_stacks_in_files_of_their_own_without_heads_show_where_the_ranks_part(
    tmp_path: Path,
) -> None:
    other = REDUCES.replace("all_reduce", "broadcast").replace(":60", ":71")
    files = {f"py-spy-tp{rank}.txt": REDUCES if rank == 0 else other for rank in range(4)}
    report = explained(files, tmp_path)
    assert (report.verdict, report.suspects[0].ranks) == ("hung", (0,))
    assert report.causes[0].id == "rank-conditional-collective"


def test_a_saved_stack_of_a_worker_stands_beside_that_of_its_rank(tmp_path: Path) -> None:
    report = explained(
        {
            "py-spy-rank0-main.txt": "get (multiprocessing/queues.py:113)\n"
            "__next__ (torch/utils/data/dataloader.py:732)\nfit (train.py:10)\n",
            "py-spy-rank0-worker.txt": "collect (tables.py:24)\nread (samples.py:77)\n",
        },
        tmp_path,
    )
    assert report.verdict == "hung"
    assert report.causes[0].id == "data-worker-stuck"
    assert "tables.py:24" in report.causes[0].summary
    steps = [step for fix in report.causes[0].fixes for step in fix.steps]
    assert not [step for step in steps if "--pid -" in step]
    assert report.looked_s < 5


FEEDS = """Process SpawnProcess-15:
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/process.py", line 317, in _bootstrap
    util._exit_function()
  File "/usr/lib/python3.11/multiprocessing/util.py", line 300, in _run_finalizers
    finalizer()
  File "/usr/lib/python3.11/multiprocessing/util.py", line 224, in __call__
    res = self._callback(*self._args, **self._kwargs)
  File "/usr/lib/python3.11/multiprocessing/queues.py", line 199, in _finalize_join
    thread.join()
KeyboardInterrupt
"""


def test_ctrl_c_on_a_child_alone_shows_where_it_stood(tmp_path: Path) -> None:
    report = explained({"job.log": FEEDS}, tmp_path)
    assert (report.verdict, report.causes[0].id) == ("hung", "queue-deadlock")


def test_a_job_that_was_done_and_had_to_be_ended_by_ctrl_c_hangs(tmp_path: Path) -> None:
    log = "done training in 162.1 seconds\n^C" + FEEDS
    report = explained({"job.log": log}, tmp_path)
    assert report.verdict == "hung"
    assert "did not end" in report.says


def test_a_rank_that_said_that_it_compiles_a_kernel_is_who_the_others_waited_for(
    tmp_path: Path,
) -> None:
    said = (
        "(Worker_TP0 pid=214) WARNING 09-02 03:18:41 [monitor.py:103] Triton kernel JIT compilation"
        " during inference: _gather_kernel. This causes a latency spike\n"
    )
    files = {"node0.log": said, "node1.log": watchdog(1, 214)}
    first = explained(files, tmp_path).causes[0]
    assert (first.id, first.ranks) == ("rank-compiling", (0,))
    # a path with such words in it is no such line
    files["node0.log"] = "[rank0]: read /data/.triton/autotuning/compiling.pickle\n"
    assert explained(files, tmp_path).causes[0].id != "rank-compiling"


def test_a_lone_stack_inside_a_compiler_stands_in_it(tmp_path: Path) -> None:
    frames = (
        "    communicate (subprocess.py:1196)\n    check_output (subprocess.py:466)\n    compile"
        " (torch/_inductor/codecache.py:3187)\n    autotune"
        " (torch/_inductor/select_algorithm.py:1815)\n    main (train.py:40)\n"
    )
    report = explained({"stack.txt": frames}, tmp_path)
    assert (report.verdict, report.causes[0].id) == ("hung", "rank-compiling")


def test_a_stack_pasted_outermost_first_stands_where_its_thread_waits(tmp_path: Path) -> None:
    log = (
        "Eval: 0/1319\nproxy         (app/router.py:127)\nrun           (asyncio_manager.py:137)\n"
        "wait          (threading.py:355)\n"
    )
    report = explained({"job.log": log}, tmp_path)
    assert report.verdict == "hung"
    assert "asyncio_manager.py:137" in report.says


def test_what_a_rank_raises_once_it_gave_up_a_collective_repeats_that(tmp_path: Path) -> None:
    mismatch = "DDP expects same model across all ranks, but Rank 2 has 51 params"
    log = "".join(watchdog(rank, 1) for rank in range(3)) + "".join(
        traceback("RuntimeError", mismatch, prefix=f"[rank{rank}]: ", leaf=C10D)
        for rank in range(3)
    )
    report = explained({"job.log": log}, tmp_path)
    assert report.verdict == "hung"
    assert not any(cause.id == "multi-rank-mismatch" for cause in report.causes)
