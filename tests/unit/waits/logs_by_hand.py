"""Short logs written by hand, each with the truth about it. Names of files, hosts and scripts
are made up.
"""

from __future__ import annotations

from typing import NamedTuple

SITE = "/env/lib/python3.11/site-packages"


class Told(NamedTuple):
    """`files` by name; `verdict`; `ranks` of the first suspect group (None: no group); `says`
    are words of the headline; `cause` the first, "" any.
    """

    name: str
    files: dict[str, str]
    verdict: str
    ranks: tuple[int, ...] | None
    says: str = ""
    cause: str = ""


def traceback(
    kind: str,
    message: str,
    *,
    file: str = "/job/train.py",
    line: int = 25,
    prefix: str = "",
    leaf: str = "",
) -> str:
    lines = [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 53, in <module>',
        "    main()",
        f'  File "{file}", line {line}, in main',
        "    step(batch)",
    ]
    lines += [f'  File "{leaf}", line 2800, in all_reduce', "    work.wait()"] if leaf else []
    return "".join(
        f"{prefix}{one}\n" for one in [*lines, f"{kind}: {message}" if message else kind]
    )


C10D = f"{SITE}/torch/distributed/distributed_c10d.py"
CLOSED = (
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"
    " [10.1.0.7]:40312"
)


def closed(rank: int) -> str:
    return traceback("RuntimeError", CLOSED, line=28, prefix=f"[rank{rank}]: ", leaf=C10D)


def watchdog(
    rank: int,
    seq: int,
    op: str = "ALLREDUCE",
    numel: int = 1024,
    ms: int = 600000,
    clock: str = "10:40:00",
) -> str:
    return (
        f"[rank{rank}]:[E1120 {clock}.123456789 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog"
        f" caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op},"
        f" NumelIn={numel}, NumelOut={numel}, Timeout(ms)={ms}) ran for {ms + 41} milliseconds"
        " before timing out.\n"
    )


def last_work(rank: int, enqueued: int, completed: int) -> str:
    return (
        f"[rank{rank}]:[E1120 10:40:00.223456789 ProcessGroupNCCL.cpp:756] [Rank {rank}] Exception"
        f" (either an error or timeout) detected by watchdog at work: {enqueued}, last enqueued"
        f" NCCL work: {enqueued}, last completed NCCL work: {completed}.\n"
    )


def table(first: tuple[int, int], *others: tuple[int, int]) -> str:
    """Torchrun's table: (rank, exit code)."""

    def entry(number: int, rank: int, code: int) -> str:
        name = {-9: " (SIGKILL)", -11: " (SIGSEGV)", -15: " (SIGTERM)", -6: " (SIGABRT)"}.get(
            code, ""
        )
        why = (
            f"Signal {-code}{name} received by PID {4000 + rank}"
            if code < 0
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
        return (
            f"[{number}]:\n  time      : 2026-11-20_10:4{number}:0{number}\n  host      : node7\n "
            f" rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid:"
            f" {4000 + rank}){name}\n  error_file: <N/A>\n  traceback : {why}\n"
        )

    failures = (
        "".join(entry(number, *one) for number, one in enumerate(others, 1))
        or "  <NO_OTHER_FAILURES>\n"
    )
    return (
        "Traceback (most recent call last):\n"
        f'  File "{SITE}/torch/distributed/launcher/api.py", line 264, in launch_agent\n    raise '
        f"ChildFailedError(\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        + "=" * 60
        + "\ntrain.py FAILED\n"
        + "-" * 60
        + f"\nFailures:\n{failures}"
        + "-" * 60
        + f"\nRoot Cause (first observed failure):\n{entry(0, *first)}"
        + "=" * 60
        + "\n"
    )


STEPS = "".join(
    f"[rank{rank}]: step {step}/100 loss 2.{step}\n" for step in range(1, 6) for rank in (0, 1)
)
BARS = "".join(
    f" {step}%|#         | {step}/100 [00:{step:02d}<01:40,  1.00it/s]\n" for step in range(1, 6)
)

TOLD = [
    Told(
        "first traceback before the echo",
        {"a.log": STEPS + traceback("KeyError", "'label'", prefix="[rank1]: ") + closed(0)},
        "crashed",
        (1,),
        "Rank 1 raised KeyError",
        "user-exception",
    ),
    Told(
        "echo printed before the origin",
        {"a.log": STEPS + closed(0) + traceback("KeyError", "'label'", prefix="[rank1]: ")},
        "crashed",
        (1,),
        "Rank 1 raised KeyError",
        "user-exception",
    ),
    Told(
        "a file per rank",
        {
            "logs/rank0.log": closed(0).replace("[rank0]: ", ""),
            "logs/rank1.log": traceback("ValueError", "labels are empty"),
            "logs/rank2.log": closed(2).replace("[rank2]: ", ""),
        },
        "crashed",
        (1,),
        "Rank 1 raised ValueError",
        "user-exception",
    ),
    Told(
        "no rank at all",
        {"a.log": traceback("ValueError", "labels are empty")},
        "crashed",
        (),
        "raised ValueError",
        "user-exception",
    ),
    Told(
        "only the last line of a traceback",
        {"a.log": "ValueError: the tokenizer has no padding token for this batch\n"},
        "crashed",
        (),
        "raised ValueError",
    ),
    Told(
        "a traceback without its head",
        {
            "a.log": "    main()\n"
            + "".join(
                line + "\n"
                for line in traceback("IndexError", "list index out of range").splitlines()[3:]
            )
        },
        "crashed",
        (),
        "IndexError: list index out of range at train.py:25 in main",
    ),
    Told(
        "quoted in an answer",
        {
            "a.log": "".join(
                f"> {line}\n" for line in traceback("ValueError", "labels are empty").splitlines()
            )
        },
        "crashed",
        (),
        "ValueError: labels are empty at train.py:25",
    ),
    Told(
        "with line numbers",
        {
            "a.log": "".join(
                f"{number}: {line}\n"
                for number, line in enumerate(
                    traceback("ValueError", "labels are empty").splitlines(), 118
                )
            )
        },
        "crashed",
        (),
        "ValueError: labels are empty at train.py:25",
    ),
    Told(
        "behind a logger's prefix",
        {
            "a.log": "".join(
                f"2026-11-20 10:00:0{number},123 ERROR {line}\n"
                for number, line in enumerate(
                    traceback("ValueError", "labels are empty").splitlines()
                )
            )
        },
        "crashed",
        (),
        "ValueError: labels are empty at train.py:25",
    ),
    Told(
        "a box by rich",
        {
            "a.log": "\u256d\u2500\u2500\u2500\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u2500\u2500\u2500\u256e\n\u2502 /job/train.py:25 in main                 \u2502\n\u2502                                          \u2502\n\u2502   24 \u2502   batch = next(rows)                \u2502\n\u2502 \u2771 25 \u2502   step(batch)                       \u2502\n\u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f\nTypeError: step() got an unexpected argument\n"
        },
        "crashed",
        (),
        "TypeError: step() got an unexpected argument at train.py:25 in main",
    ),
    Told(
        "a notebook's traceback",
        {
            "a.log": "-" * 75
            + "\nZeroDivisionError                         Traceback (most recent call last)\nCell In[5], line 3\n      1 import train\n      2 rows = []\n----> 3 train.main(rows)\n\nFile ~/job/train.py:25, in main(rows)\n     24 def main(rows):\n---> 25     return 1 / len(rows)\n\nZeroDivisionError: division by zero\n"
        },
        "crashed",
        (),
        "ZeroDivisionError: division by zero at train.py:25 in main",
    ),
    Told(
        "chained, raised from",
        {
            "a.log": traceback("KeyError", "'x'", file="/job/data.py", line=4)
            + "\nThe above exception was the direct cause of the following exception:\n\n"
            + traceback("RuntimeError", "the row cannot be read")
        },
        "crashed",
        (),
        "KeyError: 'x' at data.py:4",
    ),
    Told(
        "of a loader's worker",
        {
            "a.log": "[rank3]: Traceback (most recent call last):\n"
            f'[rank3]:   File "/job/train.py", line 9, in <module>\n[rank3]:     for batch in loader:\n[rank3]:   File "{SITE}/torch/_utils.py", line 750, in reraise\n[rank3]:     raise exception\n[rank3]: FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 3.\n[rank3]: Original Traceback (most recent call last):\n[rank3]:   File "/job/data.py", line 14, in __getitem__\n[rank3]:     return open(self.rows[index])\n[rank3]: FileNotFoundError: [Errno 2] No such file or directory: \'/data/0001.npy\'\n'
        },
        "crashed",
        (3,),
        "Rank 3 raised FileNotFoundError",
        "bad-sample",
    ),
    Told(
        "all ranks alike",
        {
            "a.log": "".join(
                traceback(
                    "ModuleNotFoundError", "No module named 'rotary'", prefix=f"[rank{rank}]: "
                )
                for rank in range(4)
            )
        },
        "crashed",
        (),
        "All ranks raised ModuleNotFoundError",
    ),
    Told(
        "torchrun's table only, killed",
        {"a.log": table((2, -9), (0, -15), (1, -15))},
        "crashed",
        (2,),
        "Rank 2 died of SIGKILL",
    ),
    Told(
        "torchrun's table only, code 1",
        {"a.log": table((1, 1), (0, -15))},
        "crashed",
        (1,),
        "Rank 1 ended with exit code 1",
    ),
    Told(
        "killed silently, the others lose it",
        {"a.log": STEPS + closed(0) + closed(1) + table((2, -9), (0, 1), (1, 1))},
        "crashed",
        (2,),
        "Rank 2 died of SIGKILL",
    ),
    Told(
        "segfault with faulthandler",
        {
            "a.log": STEPS
            + f'[rank1]: Fatal Python error: Segmentation fault\n[rank1]: \n[rank1]: Current thread 0x00007f2b56846b80 (most recent call first):\n[rank1]:   File "{SITE}/kernels/ops.py", line 12 in fused\n[rank1]:   File "/job/train.py", line 25 in main\n'
            + closed(0)
        },
        "crashed",
        (1,),
        "Rank 1 died of SIGSEGV",
    ),
    Told(
        "srun says who was killed",
        {
            "slurm-77.out": STEPS
            + "srun: error: node7: task 3: Out Of Memory\nsrun: error: node6: tasks 0-2: Killed\nslurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\n"
        },
        "crashed",
        (3,),
        "Rank 3 was killed for want of memory",
        "host-oom-killed",
    ),
    Told(
        "srun after a traceback",
        {
            "slurm-78.out": "0: step 1 loss 1.0\n3: "
            + "3: ".join(traceback("KeyError", "'label'").splitlines(keepends=True))
            + "srun: error: node7: task 3: Exited with exit code 1\nsrun: error: node6: task 0: Terminated\n"
        },
        "crashed",
        (3,),
        "Rank 3 raised KeyError",
    ),
    Told(
        "DeepSpeed's launcher",
        {
            "a.log": traceback("ValueError", "labels are empty")
            + "[2026-11-20 10:00:00,123] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4000\n[2026-11-20 10:00:01,123] [ERROR] [launch.py:325:sigkill_handler] ['/env/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = 1\n"
        },
        "crashed",
        (1,),
        "raised ValueError",
    ),
    Told(
        "DeepSpeed kills silently",
        {
            "a.log": BARS
            + "[2026-11-20 10:00:00,123] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4000\n[2026-11-20 10:00:01,123] [ERROR] [launch.py:325:sigkill_handler] ['/env/bin/python', '-u', 'train.py', '--local_rank=1'] exits with return code = -9\n"
        },
        "crashed",
        (1,),
        "died of SIGKILL",
    ),
    Told(
        "spawn tells the process",
        {
            "a.log": "W1120 10:00:00.000000 77 torch/multiprocessing/spawn.py:160] Terminating "
            "process 4001 via signal SIGTERM\ntorch.multiprocessing.spawn.ProcessExitedException: "
            "process 1 terminated with signal SIGKILL\n"
        },
        "crashed",
        (1,),
        "Rank 1 died of SIGKILL",
    ),
    Told(
        "spawn brings the traceback over",
        {
            "a.log": f'Traceback (most recent call last):\n  File "/job/train.py", line 80, in <module>\n    mp.spawn(main, nprocs=2)\n  File "{SITE}/torch/multiprocessing/spawn.py", line 158, in join\n    raise ProcessRaisedException(msg, error_index, failed_process.pid)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n'
            + traceback("ValueError", "labels are empty")
        },
        "crashed",
        (1,),
        "Rank 1 raised ValueError",
    ),
    Told(
        "mpirun",
        {
            "a.log": "--------------------\nmpirun noticed that process rank 3 with PID 4003 on "
            "node node7 exited on signal 11 (Segmentation fault).\n--------------------\n"
        },
        "crashed",
        (3,),
        "Rank 3 died of SIGSEGV",
    ),
    Told(
        "Kubernetes says OOMKilled",
        {
            "describe.txt": "    State:          Terminated\n      Reason:       OOMKilled\n      "
            "Exit Code:    137\n      Started:      Fri, 20 Nov 2026 10:00:00 +0000\n"
        },
        "crashed",
        (),
        "want of memory",
        "host-oom-killed",
    ),
    Told(
        "a shell says Killed",
        {"a.log": BARS + "run.sh: line 12:  4711 Killed                  python train.py\n"},
        "crashed",
        (),
        "died of SIGKILL",
    ),
    Told(
        "watchdogs of all but one",
        {"a.log": "[rank0]: world_size=4\n" + "".join(watchdog(rank, 204) for rank in (0, 1, 3))},
        "hung",
        (2,),
        "Rank 2 did not join all_reduce #204",
    ),
    Told(
        "one rank is behind by its last work",
        {
            "a.log": "".join(watchdog(rank, 204) + last_work(rank, 204, 203) for rank in (0, 1, 3))
            + watchdog(2, 203)
            + last_work(2, 203, 202)
        },
        "hung",
        (2,),
        "Rank 2 did not join",
    ),
    Told(
        "other operations at one number",
        {
            "a.log": "".join(watchdog(rank, 12, "ALLREDUCE", 512) for rank in (0, 2, 3))
            + watchdog(1, 12, "BROADCAST", 9)
        },
        "hung",
        (1,),
        "The ranks part at collective #12",
    ),
    Told(
        "other sizes at one number",
        {
            "a.log": "".join(watchdog(rank, 12, "ALLREDUCE", 512) for rank in (0, 2, 3))
            + watchdog(1, 12, "ALLREDUCE", 500)
        },
        "hung",
        (1,),
        "all_reduce #12 of 500 elements",
        "collective-shape-mismatch",
    ),
    Told(
        "a watchdog before the traceback of another",
        {
            "a.log": watchdog(0, 9)
            + watchdog(2, 9)
            + traceback("OSError", "[Errno 28] No space left on device", prefix="[rank1]: ")
        },
        "crashed",
        (1,),
        "Rank 1 raised OSError",
        "disk-full",
    ),
    Told(
        "watchdog, then aborted",
        {
            "a.log": watchdog(0, 9)
            + "[rank0]: terminate called after throwing an instance of 'c10::DistBackendError'\n[rank0]:   what():  [PG 0 Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)\n[rank0]: Fatal Python error: Aborted\n"
            + table((0, -6))
        },
        "hung",
        None,
        "all_reduce #9",
    ),
    Told(
        "gave up at different lines",
        {
            "a.log": "".join(
                traceback(
                    "RuntimeError",
                    "[/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 8000ms for recv "
                    "operation to complete",
                    line=31 if rank == 1 else 44,
                    prefix=f"[rank{rank}]: ",
                    leaf=C10D,
                )
                for rank in range(3)
            )
        },
        "hung",
        (1,),
        "Rank 1 stands in a collective at train.py:31 in main, ranks 0 and 2 in a collective at train.py:44",
    ),
    Told(
        "a fatal abort whose words name the rank",
        {
            "a.log": "terminate called after throwing an instance of 'c10::DistBackendError'\n  "
            "what():  [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
            "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600041 "
            "milliseconds before timing out.\n"
        },
        "hung",
        None,
        "all_reduce #7",
    ),
    Told(
        "a loader's worker is killed",
        {
            "a.log": BARS
            + traceback("RuntimeError", "DataLoader worker (pid 4711) is killed by signal: Killed.")
        },
        "crashed",
        (),
        "is killed by signal: Killed",
    ),
    Told(
        "a run without a batch",
        {
            "a.log": "0 batches per epoch after filtering\nepoch 0: 0 steps\ntraining completed "
            "in 0.4 s\n"
        },
        "crashed",
        (),
        "0 batches per epoch",
        "no-steps-run",
    ),
    Told(
        "the last line of zero-based steps",
        {
            "a.log": "".join(
                f"Epoch: [0]  [{step}/40]  loss: 2.1 ({step}.0)\n" for step in range(0, 40, 3)
            )
            + "Training time 0:00:12\n"
        },
        "healthy",
        None,
        "the job finished",
    ),
    Told(
        "a kernel's log alone",
        {
            "dmesg.txt": "[Fri Nov 20 10:00:00 2026] Out of memory: Killed process 4711 (python) "
            "total-vm:90000000kB, anon-rss:80000000kB, file-rss:0kB\n"
        },
        "crashed",
        (),
        "killed process 4711",
    ),
    Told(
        "an exception that steps came after",
        {
            "a.log": BARS
            + traceback("ConnectionError", "the tracker did not answer")
            + "".join(
                f" {step}%|##        | {step}/100 [00:{step:02d}<00:40,  1.00it/s]\n"
                for step in range(6, 20)
            )
            + traceback("ValueError", "labels are empty")
        },
        "crashed",
        (),
        "raised ValueError",
    ),
    Told(
        "a warning right behind it says that it goes on",
        {
            "a.log": STEPS
            + traceback("TimeoutError", "the read timed out", prefix="[rank1]: ")
            + "[rank1]: WARNING: retrying once\n"
            + traceback("KeyError", "'label'", prefix="[rank0]: ")
            + closed(1)
        },
        "crashed",
        (0,),
        "Rank 0 raised KeyError",
    ),
    Told(
        "monitored barrier names them",
        {
            "a.log": "[rank0]: RuntimeError: "
            "[/pytorch/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp:2792] [Rank 0]: Ranks 2, "
            "5 failed to pass monitoredBarrier in 300000 ms\n"
        },
        "hung",
        (2, 5),
        "Ranks 2 and 5 did not join",
    ),
    Told(
        "finished",
        {"a.log": STEPS + "[rank0]: step 100/100 loss 0.1\n[rank0]: Training completed.\n"},
        "healthy",
        None,
        "Nothing failed: the job finished at step 100 of 100",
    ),
    Told(
        "the launcher says that all left well",
        {
            "a.log": STEPS
            + "".join(
                f"[2031-02-03 04:05:0{n},789] [INFO] [launch.py:351:main] Process 424{n} exits "
                f"successfully.\n"
                for n in range(2)
            )
        },
        "healthy",
        None,
        "Process 4241 exits successfully",
    ),
    Told(
        "one of two left well, and the other is heard of no more",
        {
            "a.log": BARS
            + "[2031-02-03 04:05:00,789] [INFO] [launch.py:351:main] Process 4240 exits successfully.\n"
        },
        "undetermined",
        None,
    ),
    Told(
        "finished after a handled exception",
        {
            "a.log": BARS
            + "WARNING upload failed, will retry:\n"
            + traceback("ConnectionError", "the tracker did not answer")
            + "".join(
                f" {step}%|##        | {step}/100 [00:{step % 60:02d}<00:40,  1.00it/s]\n"
                for step in range(6, 101)
            )
            + "Training finished.\n"
        },
        "healthy",
        None,
        "the job finished",
    ),
    Told(
        "stopped in the middle",
        {"a.log": BARS},
        "undetermined",
        None,
        "steps up to its last line (a.log:5, step 5 of 100), and nothing in it failed or waits",
    ),
    Told(
        "stopped behind its steps",
        {"a.log": BARS + "closing the reader\nreader closed\nall shards given back\n"},
        "undetermined",
        None,
        "neither that the job finished nor that anything failed",
    ),
    Told(
        "the launcher was sent a number's signal",
        {
            "a.log": BARS + "W1103 17:28:49.650000 190834 torch/distributed/elastic/agent/server/"
            "api.py:723] Received 1 death signal, shutting down workers\n"
        },
        "crashed",
        (),
        "The launcher was sent SIGHUP and ended its workers",
        "preempted-or-hangup",
    ),
    Told(
        "the launcher was sent SIGTERM",
        {"a.log": BARS + "Received Signals.SIGTERM death signal, shutting down workers\n"},
        "crashed",
        (),
        "The launcher was sent SIGTERM",
        "preempted-or-hangup",
    ),
    Told(
        "a wrapped stack that was pressed",
        {
            "a.log": "Traceback (most recent call last):\n"
            '  File "/env/lib/python3.9/site-packages/ultralytics/engine/trainer.py", line 277\n'
            ", in _setup_train\n"
            "    self.loader = self.get_dataloader(self.trainset, rank=RANK)\n"
            '  File "/env/lib/python3.9/site-packages/ultralytics/models/yolo/detect/train.py"\n'
            ", line 48, in get_dataloader\n"
            "    with torch_distributed_zero_first(rank):\n"
            '  File "/env/lib/python3.9/contextlib.py", line 119, in __enter__\n'
            "    return next(self.gen)\n"
            "KeyboardInterrupt\n"
        },
        "hung",
        (),
        "until somebody pressed Ctrl-C",
        "rank0-long-task",
    ),
    Told(
        "the program says that its inputs are uneven",
        {
            "a.log": "[E ProcessGroupGloo.cpp:138] [Rank 0]: Rank 2 failed to pass monitoredBarrier"
            " in 30000 ms\n2031-05-16 INFO Detected uneven workload distribution: Rank 3"
            " successfully reached monitoredBarrier, but received errors while waiting for"
            " send/recv from rank 0.\n"
        },
        "hung",
        (2,),
        "",
        "uneven-inputs",
    ),
    Told(
        "a worker without tasks",
        {
            "a.log": "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting"
            " 60000ms for recv operation to complete\n",
            "b.log": "INFO [tasks.py:220] No tasks for now, maybe more later\n" * 4,
        },
        "hung",
        None,
        "",
        "uneven-inputs",
    ),
    Told(
        "a sharded save that waits for longer than any",
        {
            "a.log": "INFO:accelerate.accelerator:Saving FSDP model\n[E ProcessGroupNCCL.cpp:828]"
            " [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18364,"
            " OpType=ALLGATHER, Timeout(ms)=4800000) ran for 4804648 milliseconds before timing"
            " out.\n"
        },
        "hung",
        (),
        "",
        "rank-conditional-collective",
    ),
    Told(
        "horovod's whole list",
        {
            "a.log": "[2031-03-15 18:43:32: W horovod/common/stall_inspector.cc:105] One or more"
            " tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and"
            " are waiting for remainder of ranks for more than 60 seconds.\nMissing ranks:\n"
            + "".join(f"{rank}: [allreduce.noname.222]\n" for rank in (1, 2, 3))
        },
        "hung",
        (1, 2, 3),
    ),
    Told(
        "short of its plan",
        {"a.log": BARS + "Training finished.\n"},
        "crashed",
        (),
        "as if it were done at step 5 of 100",
        "no-steps-run",
    ),
    Told(
        "sacct says completed",
        {
            "a.log": STEPS + "[rank0]: step 100/100 loss 0.1\n",
            "sacct.txt": "JobID           JobName  Partition      State ExitCode\n------------ "
            "---------- ---------- ---------- --------\n77                train        gpu  "
            "COMPLETED      0:0\n77.0              train             COMPLETED      0:0\n",
        },
        "healthy",
        None,
        "the job finished",
    ),
    Told(
        "sacct says timeout",
        {
            "a.log": STEPS,
            "sacct.txt": "JobID           JobName  Partition      State ExitCode\n------------ "
            "---------- ---------- ---------- --------\n77                train        gpu    "
            "TIMEOUT      0:0\n",
        },
        "crashed",
        (),
        "SLURM's TIMEOUT",
        "preempted-or-hangup",
    ),
    Told(
        "interrupted from the keyboard after another's failure",
        {
            "a.log": traceback("KeyError", "'label'", prefix="[rank1]: ")
            + traceback("KeyboardInterrupt", "", prefix="[rank0]: ")
        },
        "crashed",
        (1,),
        "Rank 1 raised KeyError",
    ),
    Told(
        "an ignored exception at the end of a healthy run",
        {
            "a.log": STEPS
            + "[rank0]: step 100/100 loss 0.1\n[rank0]: Training completed.\nException ignored in: <function Reader.__del__ at 0x7f00>\n"
            + traceback("AttributeError", "'NoneType' object has no attribute 'close'")
        },
        "healthy",
        None,
        "the job finished",
    ),
]
