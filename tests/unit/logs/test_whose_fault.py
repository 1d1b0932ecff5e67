"""What a person, a network or a store did to a program is no fault of the line at which it
stood.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.pipelines import explain

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
USER = '  File "/home/ann/data.py", line 10, in prepare\n    store.get("ready")\n'
IMPORT = (
    '  File "/home/ann/train.py", line 3, in <module>\n    import torch\n'
    f'  File "{TORCH}/__init__.py", line 1471, in <module>\n    from .functional import *\n'
    f'  File "{TORCH}/functional.py", line 9, in <module>\n    import torch.nn.functional as F\n'
)
LAUNCHER = (
    '  File "/opt/venv/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n  File'
    f' "{TORCH}/distributed/run.py", line 883, in main\n    run(args)\n'
)


@pytest.mark.parametrize(
    ("frames", "raised"),
    [
        (IMPORT, "KeyboardInterrupt"),
        (LAUNCHER, "KeyboardInterrupt"),
        (USER, "KeyboardInterrupt"),
        (USER, "RuntimeError: Socket Timeout"),
        (USER, "RuntimeError: Wait timeout"),
        (USER, "RuntimeError: wait timeout after 300000ms, keys: /ready"),
        (USER, "torch.distributed.DistStoreError: Socket Timeout"),
        (
            USER,
            (
                "TimeoutError: The client socket has timed out after 900s while trying to connect"
                " to (10.0.0.1, 29500)."
            ),
        ),
        (
            IMPORT,
            (
                "TimeoutError: The client socket has timed out after 900s while trying to connect"
                " to (10.0.0.1, 29500)."
            ),
        ),
    ],
)
def test_who_was_interrupted_or_waited_in_vain_is_not_blamed(
    frames: str, raised: str, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step 1 loss 2.0\nTraceback (most recent call last):\n{frames}{raised}\n")
    blamed = [
        cause
        for cause in explain(str(log)).causes
        if cause.id in ("user-exception", "import-failure")
    ]
    assert [cause.id for cause in blamed if cause.named or cause.points >= 13] == []


def test_a_folder_of_a_run_is_no_host(tmp_path: Path) -> None:
    for run in ("run1", "train2", "qwen25"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "rank_0.log").write_text("step 1 loss 2.0\n")
    report = explain([str(tmp_path / "run1"), str(tmp_path / "train2"), str(tmp_path / "qwen25")])
    assert [rank.host for rank in report.world.ranks if rank.host] == []


PLUGIN = "libnccl-net.so: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        (f"node1:7:9 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : {PLUGIN}", False),
        (f"2026-01-01 10:00:00 - DEBUG - tried {PLUGIN}", False),
        (f"2026-01-01 10:00:00 - INFO - ImportError: {PLUGIN}", True),
        (f"python: error while loading shared libraries: {PLUGIN}", True),
    ],
)
def test_what_a_program_tried_and_did_without_is_no_failure(
    line: str, blamed: bool, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"start\n{line}\nNCCL version 2.21.5+cuda12.4\n")
    report = explain(str(log))
    assert ("abi-mismatch" in [cause.id for cause in report.causes]) == blamed
    assert (report.verdict == "crashed") == blamed


NO_SPACE = "OSError: [Errno 28] No space left on device"
LOCK = """  File "/usr/lib/python3.10/multiprocessing/context.py", line 68, in Lock
    return Lock(ctx=self.get_context())
  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in __init__
    sl = self._semlock = _multiprocessing.SemLock(
"""
SAVE = '  File "/home/ann/train.py", line 9, in save\n    file.write(data)\n'


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"Traceback (most recent call last):\n{LOCK}{NO_SPACE}\n", "shm-exhausted"),
        (f"Traceback (most recent call last):\n{SAVE}{NO_SPACE}\n", "disk-full"),
        (
            (
                "nslookup: can't resolve 'train-master-0': Name does not resolve\nwaiting\n"
                f"Traceback (most recent call last):\n{LAUNCHER}"
            ),
            "hostname-resolution",
        ),
        (
            (
                "Running tokenizer on dataset:  46%|████      | 1571000/3402611 [30:08<35:08, 868.55"
                f" examples/s]Traceback (most recent call last):\n{USER[:-10]}"
            ),
            "rank0-long-task",
        ),
        (
            # the next of its parts, of five minutes each, was under way when the limit ran out
            (
                "Tokenizing:  24%|██▍       | 7/29 [28:27<1:46:07, 289.40s/ba]\n"
                "frame #13: c10d::ProcessGroupNCCL::barrier(c10d::BarrierOptions const&) + 0x72a (0x7)\n"
            ),
            "rank0-long-task",
        ),
    ],
)
def test_where_it_was_raised_and_when_tells_whose_fault_it_is(
    text: str, cause: str, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(text)
    assert explain(str(log)).causes[0].id == cause


def test_a_setting_of_a_timeout_is_no_wait(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n"
        "  rdzv_configs     : {'rdzv_backend': 'c10d', 'rank': 1, 'timeout': 900}\n"
        "INFO:torch.distributed.elastic.agent.server.api:[default] Rendezvous'ing worker group\n"
        "[W socket.cpp:558] [c10d] The client socket cannot be initialized to connect\n"
    )
    report = explain(str(log))
    assert "meet" in report.says
    assert not [cause for cause in report.causes if "gave up" in cause.summary]


SILENT = (
    "INFO 11-11 09:4{}:51 [shm_broadcast.py:501] No available shared memory broadcast block found"
    " in 60 seconds. This typically happens when some processes are hanging\n"
)


@pytest.mark.parametrize(("times", "verdict"), [(1, "undetermined"), (4, "hung")])
def test_who_hands_out_work_and_is_not_answered_waits(
    times: int, verdict: str, tmp_path: Path
) -> None:
    log = tmp_path / "serve.log"
    log.write_text("loading\n" + "".join(SILENT.format(number) for number in range(times)))
    report = explain(str(log))
    assert report.verdict == verdict
    assert {"rank-stuck", "rank-compiling"} <= {cause.id for cause in report.causes}
    assert not any(cause.named for cause in report.causes)
