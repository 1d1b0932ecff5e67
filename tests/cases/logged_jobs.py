"""Golden cases of `explain` on logs that were written by hand, laid out as a job leaves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cases.live_jobs import LiveRecipe, trainprobe_in
from tests.unit.waits.logs_by_hand import C10D, STEPS, closed, table, traceback, watchdog


def of_logs(files: dict[str, str]) -> Callable[[Path], Path]:
    """Explain these files by name."""

    def make(folder: Path) -> Path:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return trainprobe_in(folder, "explain", *files)

    return make


FIRST = (
    STEPS + closed(0) + traceback("KeyError", "'label'", prefix="[rank1]: ") + table((1, 1), (0, 1))
)
GAVE_UP = (
    STEPS
    + "".join(watchdog(rank, 12, "ALLREDUCE", 512) for rank in (0, 2, 3))
    + watchdog(1, 12, "ALLREDUCE", 500)
)
FINISHED = STEPS + "[rank0]: step 100/100 loss 0.1\n[rank0]: Training completed.\n"
# Eight ranks under torchrun: rank 5 runs out of memory, the others lose it, the launcher ends them
# and prints its table.
ALL_STEPS = "".join(
    f"[rank{rank}]: step {step}/2000 loss 3.{step} lr 1.0e-04\n"
    for step in range(410, 416)
    for rank in range(8)
)
MEMORY = traceback(
    "torch.OutOfMemoryError",
    "CUDA out of memory. Tried to allocate 3.06 GiB. GPU 5 has a total capacity of 79.10 GiB of "
    "which 1.42 GiB is free. "
    "Including non-PyTorch memory, this process has 77.67 GiB memory in use. Of the allocated "
    "memory 71.20 GiB is allocated by PyTorch, "
    "and 4.87 GiB is reserved by PyTorch but unallocated.",
    file="/job/model/attention.py",
    line=88,
    prefix="[rank5]: ",
)
ENDED = "".join(
    f"W1120 10:41:0{rank}.100000 3999 torch/distributed/elastic/multiprocessing/api.py:897] Sending"
    f" process {4000 + rank} closing signal SIGTERM\n"
    for rank in (0, 1, 2, 3, 4, 6, 7)
)
EIGHT = (
    ALL_STEPS
    + MEMORY
    + "".join(closed(rank) for rank in (4, 6, 7, 0, 1, 2, 3))
    + ENDED
    + table((5, 1))
)
# Rank 0 tokenises for longer than the others' watchdogs wait: nothing failed of itself.
TOKENISING = (
    "".join(f"[rank{rank}]: model is built, 1.3 B parameters\n" for rank in range(4))
    + "".join(
        f"[rank0]: Map (num_proc=1):  {share}%|###  | {share}0000/1000000"
        f" [0{share // 10}:00<0{(100 - share) // 10}:00, 1612.10 examples/s]\n"
        for share in (20, 40, 60, 80)
    )
    + "".join(watchdog(rank, 1, "ALLREDUCE", 1) for rank in (1, 2, 3))
    + "[rank0]: Map (num_proc=1):  90%|#### | 900000/1000000 [13:00<01:00, 1610.40 examples/s]\n"
)
# A node's memory ran out: the scheduler, its accounting and the kernel say so, the log of the job
# only that a task is gone.
SLURM_LOG = (
    "".join(
        f"{task}: step {step}/900 loss 2.{step}\n" for step in range(60, 64) for task in range(4)
    )
    + "slurmstepd: error: Detected 1 oom_kill event in StepId=88123.0. Some of the step tasks have"
    " been OOM Killed.\n"
    + "srun: error: gpu-c07: task 2: Out Of Memory\n"
    + traceback(
        "RuntimeError",
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"
        " [10.1.0.7]:40312",
        line=28,
        prefix="1: ",
        leaf=C10D,
    )
    + "srun: Terminating StepId=88123.0\n"
)
SACCT = (
    "JobID           JobName      State ExitCode     MaxRSS     ReqMem        NodeList \n"
    "------------ ---------- ---------- -------- ---------- ---------- --------------- \n"
    "88123          pretrain OUT_OF_ME+    0:125                  500G         gpu-c07 \n"
    "88123.batch       batch     FAILED      1:0     41212K                    gpu-c07 \n"
    "88123.0          python OUT_OF_ME+    0:125 519987212K                    gpu-c07 \n"
)
DMESG = (
    "[81211.100000] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0,"
    " oom_score_adj=0\n[81211.200000] Memory cgroup out of memory: Killed process 70112 (python)"
    " total-vm:612345678kB, anon-rss:519987212kB, file-rss:1024kB, shmem-rss:0kB, UID:1000"
    " pgtables:1000000kB oom_score_adj:0\n[81211.900000] oom_reaper: reaped process 70112 (python),"
    " now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n"
)
# The first attempt loses a file, the second one does too, further on; the launcher gives up.
AGAIN = (
    "W1120 10:42:00.100000 3999 torch/distributed/elastic/agent/server/api.py:900] [default] Worker"
    " group FAILED. 1/1 attempts left; will restart worker group\n"
)
LOST = traceback(
    "FileNotFoundError",
    "[Errno 2] No such file or directory: '/data/shards/00017.bin'",
    file="/job/data.py",
    line=31,
    prefix="[rank1]: ",
)
RESTARTED = STEPS + LOST + closed(0) + AGAIN + STEPS + LOST + closed(0) + table((1, 1), (0, 1))
EMPTY = (
    "".join(
        f"[rank{rank}]: 0 batches per epoch\n[rank{rank}]: Epoch {epoch} finished\n"
        for epoch in range(3)
        for rank in (0, 1)
    )
    + "[rank0]: Training completed. 0 steps\n"
)
# A word of the user's own program that no cause knows.
STRANGE = STEPS + "[rank1]: the flux regulator said no, leaving\n" + table((1, 73), (0, 1))

LOGGED = {
    "explain-log-eight-ranks": LiveRecipe(
        "crashed", "cuda-oom", (5,), of_logs({"torchrun.log": EIGHT})
    ),
    "explain-log-tokenising": LiveRecipe(
        "hung", "rank0-long-task", (0,), of_logs({"train.log": TOKENISING})
    ),
    "explain-log-slurm-oom": LiveRecipe(
        "crashed",
        "host-oom-killed",
        (2,),
        of_logs({"slurm-88123.out": SLURM_LOG, "sacct.txt": SACCT, "dmesg.txt": DMESG}),
    ),
    "explain-log-restarts": LiveRecipe(
        "crashed", "user-exception", (1,), of_logs({"torchrun.log": RESTARTED})
    ),
    "explain-log-no-steps": LiveRecipe(
        "crashed", "no-steps-run", (), of_logs({"train.log": EMPTY})
    ),
    "explain-log-unknown": LiveRecipe("crashed", "unknown", (1,), of_logs({"train.log": STRANGE})),
    "explain-log-first-traceback": LiveRecipe(
        "crashed", "user-exception", (1,), of_logs({"torchrun.log": FIRST})
    ),
    "explain-log-sizes-differ": LiveRecipe(
        "hung", "collective-shape-mismatch", (1,), of_logs({"job.log": GAVE_UP})
    ),
    "explain-log-finished": LiveRecipe("healthy", "", (), of_logs({"job.log": FINISHED})),
}
