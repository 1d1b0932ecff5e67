"""Logs that simply stop, or of which the end is cut off: what their last lines tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain


def explained(folder: Path, text: str) -> Report:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return explain([str(path)])


BAR = "Running tokenizer on dataset (num_proc=16): {0} [{1}, 410.20 examples/s]\n"
TRACKER = "wandb: Tracking run with wandb version 0.19.1\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            BAR.format(" 21%|##   | 210000/1000000", "45:10<2:50:00")
            + BAR.format(" 22%|##   | 220000/1000000", "47:02<2:46:40"),
            "rank0-long-task",
        ),
        (BAR.format(" 22%|##   | 2200/10000", "00:05<00:19"), "unknown"),
        (
            "[extension] Compiling the JIT fused_optim kernel during runtime now\n",
            "extension-build-lock",
        ),
        ("parsing\nread 4 files\n" + TRACKER, "remote-service-wait"),
        ("2031-01-01 10:00:00 timer.py:31 - Timer train_actor start\n", "rank-stuck"),
        (
            "2031-01-01 10:00:00 timer.py:31 - Timer train_actor start\n"
            '(Engine pid=7) INFO:     10.0.0.7:41646 - "GET /metrics HTTP/1.1" 200 OK\n' * 4,
            "rank-stuck",
        ),
    ],
)
def test_the_last_words_tell_the_phase(text: str, cause: str, tmp_path: Path) -> None:
    report = explained(tmp_path, text)

    assert (report.verdict, report.causes[0].id) == ("undetermined", cause)


@pytest.mark.parametrize(
    "text", ["epoch 1 step 10 loss 2.1\n" + TRACKER, "***** Running training *****\n" + TRACKER]
)
def test_a_tracker_that_starts_hides_no_other_phase(text: str, tmp_path: Path) -> None:
    assert "remote-service-wait" not in [one.id for one in explained(tmp_path, text).causes]


TRACEBACK = """{0}Traceback (most recent call last):
  File "train.py", line 31, in main
    for batch in loader:
  File "/opt/lib/python3.9/site-packages/torch/utils/data/dataloader.py", line 1011, in _try_get_data
    data = self._data_queue.get(timeout=timeout)
  File "/opt/lib/python3.9/queue.py", line 180, in get
    self.not_empty.wait(remaining)
  File "/opt/lib/python3.9/threading.py", line 316, in wait
    gotit = waiter.acquire(True, timeout)
"""


def test_a_traceback_that_is_cut_off_in_a_wait_is_that_of_a_ctrl_c(tmp_path: Path) -> None:
    waits = explained(tmp_path, TRACEBACK.format(""))
    of_a_child = explained(tmp_path, TRACEBACK.format("ERROR: Unexpected bus error in worker\n"))

    assert (waits.verdict, of_a_child.verdict) == ("hung", "crashed")


def test_a_log_that_ends_with_torch_s_warning_failed_there(tmp_path: Path) -> None:
    warning = (
        "NVIDIA B300 with CUDA capability sm_103 is not compatible with the current PyTorch"
        " installation.\n"
    )
    ends, went_on = (
        explained(tmp_path, warning + rest) for rest in ("", "step 1 loss 2.0\nstep 2 loss 1.9\n")
    )

    assert (ends.verdict, ends.causes[0].id) == ("crashed", "no-kernel-image")
    assert "no-kernel-image" not in [one.id for one in went_on.causes]


def test_what_sglang_writes_before_it_gives_up_tells_of_a_hang(tmp_path: Path) -> None:
    assert (
        explained(tmp_path, "[2031-03-09 00:57:15 TP1] Scheduler debug info:\n").verdict == "hung"
    )


DUMP = """Process 41: python -u job.py
Thread 41 (idle): "MainThread"
"""


def test_who_gives_up_its_group_alone_has_left_the_loop(tmp_path: Path) -> None:
    dump = DUMP + (
        "    destroy_process_group (torch/distributed/distributed_c10d.py:2184)\n"
        "    main (job.py:389)\n    <module> (job.py:401)\n"
    )
    first = explained(tmp_path, dump).causes[0]

    assert first.id == "rank-exited-early"
    assert "exit code" not in first.summary


def test_a_gpu_that_zero_waits_for_is_a_wait_for_the_ranks(tmp_path: Path) -> None:
    """DeepSpeed is installed in place, so that its path names no folder of packages."""
    dump = DUMP + (
        "    synchronize (torch/cuda/streams.py:95)\n"
        "    _synchronize_communication (/src/DeepSpeed/deepspeed/runtime/zero/stage3.py:490)\n"
        "    fetch_sub_module (/src/DeepSpeed/deepspeed/runtime/zero/stage3.py:406)\n"
        "    _call_impl (torch/nn/modules/module.py:881)\n"
        "    main (job.py:389)\n    <module> (job.py:401)\n"
    )
    nearest = [one.id for one in explained(tmp_path, dump).causes[:2]]

    assert nearest == ["unknown", "rank-divergent-forward"]


WATCHDOG = (
    "Loading safetensors checkpoint shards: 25% Completed | 1/4 [00:00<00:00, 3.72it/s]\n"
    "[rank7]:[E618 09:41:52.487 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for"
    " 600066 milliseconds before timing out.\n"
    "[rank7]:[E618 09:41:52.488 ProcessGroupNCCL.cpp:2168] [PG ID {0} PG GUID {1} Rank 3] failure"
    " detected by watchdog at work sequence id: 3 PG status: last enqueued work: 3, last completed"
    " work: 2\n"
)


@pytest.mark.parametrize(
    ("group", "cause"), [(("0", "0(default_pg)"), "rank0-long-task"), (("4", "12(tp)"), "unknown")]
)
def test_only_the_first_calls_of_all_ranks_are_at_the_start(
    group: tuple[str, str], cause: str, tmp_path: Path
) -> None:
    assert explained(tmp_path, WATCHDOG.format(*group)).causes[0].id == cause


def test_who_gave_up_with_a_full_bar_was_not_at_work(tmp_path: Path) -> None:
    text = (
        "[rank1]: Evaluating: 100%|##########| 125/125 [01:02<00:00,  2.0it/s]\n"
        "[rank1]:[E1010 04:11:52.100 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=9120, OpType=ALLGATHER, NumelIn=4096, NumelOut=8192,"
        " Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
    )
    for cause in explained(tmp_path, text).causes:
        assert not any("Evaluating: 100%" in row.says for row in cause.because)


LOCKED = """\
Traceback (most recent call last):
  File "/job/train.py", line 16, in <module>
    import ops
  File "/job/ops/__init__.py", line 2, in <module>
    fused = load("fused", sources=["fused.cu"])
  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 1307, in load
    keep_intermediates=keep_intermediates)
  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 1560, in _jit_compile
    baton."""


@pytest.mark.parametrize("cut", ["", "wa", "wait()"])
def test_a_traceback_that_ends_in_the_wait_for_a_build_is_a_hang(cut: str, tmp_path: Path) -> None:
    report = explained(tmp_path, LOCKED + cut)
    assert (report.verdict, report.causes[0].id) == ("hung", "extension-build-lock")


READ = """\
raceback (most recent call last):
  File "C:\\env\\lib\\site-packages\\urllib3\\response.py", line 444, in _error_catcher
    yield
  File "C:\\env\\lib\\site-packages\\urllib3\\response.py", line 567, in read
    data = self._fp_read(amt)
{0}  File "C:\\Python311\\lib\\ssl.py", line 1130, in read
    return self._sslobj.read(len, buffer)
TimeoutError: The read operation timed out
"""
OTHERS = '  File "C:\\env\\lib\\site-packages\\wandb\\sdk\\api.py", line 31, in sent\n    f()\n'


@pytest.mark.parametrize(("between", "named"), [("", True), (OTHERS, False)])
def test_a_read_of_which_nobody_is_shown_is_of_the_hub(
    between: str, named: bool, tmp_path: Path
) -> None:
    first = explained(tmp_path, READ.format(between)).causes[0].id
    assert (first == "hub-unreachable") is named


ANNOUNCED = "Initializing distributed: GLOBAL_RANK: {0}, MEMBER: {1}/{2}\n"
FAILED = """\
Traceback (most recent call last):
  File "/job/train.py", line 74, in main
    trainer.fit(model)
"""


@pytest.mark.parametrize(
    ("numbers", "world", "twice"),
    [
        ((0, 1, 1, 2, 2, 3, 3), 8, True),
        ((0, 1, 2, 3), 8, False),
        ((0, 1, 2, 3, 0, 1, 2, 3), 8, False),  # started again
        ((0, 1, 1, 2, 2, 3, 3), 4, False),
    ],
)
def test_ranks_that_come_twice_were_numbered_by_two_launchers(
    numbers: tuple[int, ...], world: int, twice: bool, tmp_path: Path
) -> None:
    text = "".join(ANNOUNCED.format(rank, rank + 1, world) for rank in numbers)
    causes = explained(tmp_path, text + FAILED).causes
    assert (causes[0].id == "launcher-args") is twice


TORCHRUN = """\
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/env/lib/python3.11/site-packages/torch/distributed/run.py", line 794, in main
    run(args)
"""
NOT_USED = (
    "master_addr is only used for static rdzv_backend and when rdzv_endpoint is not specified.\n"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [(NOT_USED + TORCHRUN, "launcher-args"), (TORCHRUN, ""), (NOT_USED + FAILED, "")],
)
def test_a_launcher_that_fails_behind_its_own_warning(
    text: str, cause: str, tmp_path: Path
) -> None:
    first = explained(tmp_path, text).causes[0].id
    assert first == cause if cause else first != "launcher-args"


GAVE_UP = (
    "[rank{0}]:[E1010 04:11:52.100 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn={2}, NumelOut={2},"
    " Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n"
)
ENDS = (
    "(Worker pid=7) [rank0]:[E1010 04:11:52.101 ProcessGroupNCCL.cpp:621] [Rank 0] To avoid data"
    " inconsistency, we are taking the entire process down.{0}\n"
)


@pytest.mark.parametrize(
    ("folded", "blamed"), [("", True), (" [repeated 3x across cluster]", False)]
)
def test_nobody_is_silent_where_lines_were_left_out(
    folded: str, blamed: bool, tmp_path: Path
) -> None:
    text = "(Worker pid=8) " + GAVE_UP.format(2, 1, 1) + ENDS.format(folded)
    assert ("Rank 1" in explained(tmp_path, text).says) is blamed


@pytest.mark.parametrize(("size", "number"), [(1, 41), (1, 43), (25_427_968, 41)])
def test_a_call_that_is_over_for_one_was_not_the_same(
    size: int, number: int, tmp_path: Path
) -> None:
    text = GAVE_UP.format(0, 40, 25_427_968) + GAVE_UP.format(1, number, size)
    causes = explained(tmp_path, text).causes
    told = any("is through with #40" in row.says for one in causes for row in one.because)
    assert told is (size == 1 and number == 41)


RANDOM = """\
[rank7]: Traceback (most recent call last):
[rank7]:   File "/job/train.py", line 31, in <module>
[rank7]:     {0}(state)
[rank7]:   File "/env/lib/python3.11/site-packages/accelerate/{1}.py", line 127, in {0}
[rank7]:     generator.set_state(state)
[rank7]: RuntimeError: Invalid mt19937 state
"""


@pytest.mark.parametrize(
    ("function", "file", "cause"),
    [
        ("synchronize_rng_state", "utils/random", "rank-conditional-collective"),
        ("load_accelerator_state", "checkpointing", "user-exception"),
    ],
)
def test_what_a_broadcast_brought_came_from_another_call(
    function: str, file: str, cause: str, tmp_path: Path
) -> None:
    text = RANDOM.format(function, file) + GAVE_UP.format(7, 80, 5056)
    ids = [one.id for one in explained(tmp_path, text).causes]
    assert (ids[0] == cause) or (cause == "user-exception" and "rank-conditional" not in ids[0])


DONE = "[INFO] 2031-12-08 04:21:30,257 api: [default] All workers successfully finished.\n"
LOST = "gpu7:141:158 [0] include/socket.h:416 NCCL WARN Net : Connection closed by remote peer\n"


@pytest.mark.parametrize(("other", "verdict"), [(LOST, "hung"), (LOST + DONE, "healthy")])
def test_a_host_that_is_done_left_the_others_alone(
    other: str, verdict: str, tmp_path: Path
) -> None:
    for name, text in (("node0.log", DONE), ("node1.log", other)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = explain([str(tmp_path)])
    assert report.verdict == verdict
    assert [one.id for one in report.causes][:1] == ["rank-exited-early"] * (verdict == "hung")


TRACE = "Invalidate trace cache @ step 0 and module {0}: cache has only 0 modules\n"
STEP = "  {0}%|          | {0}/200 [00:51<2:51:03, 51.58s/it]"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (STEP.format(0) + TRACE.format(7) + STEP.format(1) + TRACE.format(14), False),
        (STEP.format(0) + "\n" + STEP.format(1) + TRACE.format(14), True),
    ],
)
def test_a_warning_of_each_step_tells_of_no_stop(text: str, told: bool, tmp_path: Path) -> None:
    assert bool(explained(tmp_path, text).causes) is told


@pytest.mark.parametrize(("percent", "told"), [(40, True), (100, False)])
def test_what_is_loaded_whole_keeps_nobody(percent: int, told: bool, tmp_path: Path) -> None:
    bar = "Loading checkpoint shards: {0:3d}%|###   | {1}/5 [00:10<00:15,  5.0s/it]\n"
    text = bar.format(20, 1) + bar.format(percent, percent // 20) + GAVE_UP.format(4, 1, 1)
    rows = [row.says for one in explained(tmp_path, text).causes for row in one.because]
    assert any("was at «Loading checkpoint shards" in says for says in rows) is told
