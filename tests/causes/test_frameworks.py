"""Short logs in the forms that frameworks, launchers and schedulers print: what the program is
blamed for, and whom.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from trainprobe.pipelines import explain


class Told(NamedTuple):
    """`cause` is the first one, empty for none; `says` stands in its sentence."""

    verdict: str
    cause: str = ""
    ranks: tuple[int, ...] = ()
    says: str = ""


HEALTHY = Told("healthy")
WATCHDOG = (
    "[rank{rank}]:[E502 10:31:02.120000000 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=64, NumelOut=64,"
    " Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n"
)
DEEPSPEED = """\
[2031-02-03 10:00:01,123] [INFO] [launch.py:164:main] dist_world_size=4
[2031-02-03 10:00:31,100] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=0, lr=[0.0001]
[2031-02-03 10:00:51,100] [INFO] [logging.py:107:log_dist] [Rank 0] step=20, skipped=0, lr=[0.0001]
"""
TITAN = """\
[rank0]:[titan] 2031-02-03 10:00:20,120 - root - INFO - step:  1  loss: 12.27  tps: 1,200  mfu: 6.1%
[rank0]:[titan] 2031-02-03 10:00:40,120 - root - INFO - step: 10  loss: 10.27  tps: 5,200  mfu: 30%
"""
NEMO = """\
Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/4
Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/4
Training epoch 0, iteration 0/999 | lr: 1.4e-07 | global_step: 0 | reduced_train_loss: 11.03
Training epoch 0, iteration 1/999 | lr: 2.9e-07 | global_step: 1 | reduced_train_loss: 10.03
"""
HOROVOD = """\
[1,0]<stdout>:Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.31
[1,1]<stdout>:Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.30
"""
VERL = """\
(TaskRunner pid=4101) step:1 - actor/entropy:0.41 - training/global_step:1
(TaskRunner pid=4101) Training Progress:   1%|          | 1/100 [01:02<1:42:00, 62.10s/it]
"""
VLLM = """\
(EngineCore_DP0 pid=4100) INFO 02-03 10:00:20 [core.py:77] Initializing a V1 LLM engine (v0.11.0)
(Worker_TP0 pid=4201) INFO 02-03 10:00:40 [gpu_model_runner.py:2602] Starting to load model a/b...
(Worker_TP1 pid=4202) INFO 02-03 10:00:40 [gpu_model_runner.py:2602] Starting to load model a/b...
"""
ENGINE_DEAD = (
    "(APIServer pid=4000) ERROR 02-03 10:01:22 [async_llm.py:480] Traceback (most recent call"
    " last):\n(APIServer pid=4000) ERROR 02-03 10:01:22 [async_llm.py:480]   File"
    ' "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/async_llm.py", line 357, in handler\n'
    "(APIServer pid=4000) ERROR 02-03 10:01:22 [async_llm.py:480]     await core.get()\n"
    "(APIServer pid=4000) ERROR 02-03 10:01:22 [async_llm.py:480] vllm.v1.engine.exceptions."
    "EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root"
    " cause.\n"
)
FRAMES = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 20, in <module>
    main()
"""

LOGS: dict[str, tuple[str, Told]] = {
    "deepspeed ends well": (
        DEEPSPEED
        + "[2031-02-03 10:01:11,100] [INFO] [launch.py:351:main] Process 4101 exits successfully.\n",
        HEALTHY,
    ),
    "deepspeed loses a rank": (
        DEEPSPEED
        + "[2031-02-03 10:00:58,210] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4101\n"
        "[2031-02-03 10:00:58,610] [ERROR] [launch.py:325:sigkill_handler] ['/env/bin/python', '-u',"
        " 'pre.py', '--local_rank=2'] exits with return code = -9\n",
        Told("crashed", "host-oom-killed", (2,)),
    ),
    "deepspeed waits": (
        DEEPSPEED + "".join(WATCHDOG.format(rank=rank) for rank in (0, 1, 3)),
        Told("hung", "unknown", (2,), "did not join"),
    ),
    "deepspeed over pdsh: the local rank of the second host is not the rank": (
        "".join(
            f"node-{host}: [2031-02-03 10:00:01,124] [INFO] [launch.py:256:main] process 4101"
            " spawned with command: ['/env/bin/python', '-u', 'pre.py', '--local_rank=0']\n"
            for host in "ab"
        )
        + "".join(f"node-b: {line}\n" for line in FRAMES.splitlines())
        + "node-b: KeyError: 'mask'\n"
        "node-b: [2031-02-03 10:00:58,610] [ERROR] [launch.py:325:sigkill_handler] ['/env/bin/python',"
        " '-u', 'pre.py', '--local_rank=0'] exits with return code = 1\n"
        "pdsh@login: node-b: ssh exited with exit code 1\n",
        Told("crashed", "user-exception", (), "KeyError: 'mask'"),
    ),
    "torchtitan ends well": (
        TITAN + "[rank0]:[titan] 2031-02-03 10:40:03,120 - root - INFO - Training completed\n"
        "[rank0]:[titan] 2031-02-03 10:40:03,520 - root - INFO - Process group destroyed\n",
        HEALTHY,
    ),
    "torchtitan waits: the abort behind a timeout is the watchdog's": (
        TITAN
        + "".join(WATCHDOG.format(rank=rank) for rank in (0, 1, 2))
        + "E0502 10:31:10.200000 4100 torch/distributed/elastic/multiprocessing/api.py:874] failed"
        " (exitcode: -6) local_rank: 0 (pid: 4101) of binary: /env/bin/python\n",
        Told("hung", "unknown"),
    ),
    "nemo ends well": (
        NEMO + "`Trainer.fit` stopped: `max_steps=1000` reached.\n",
        HEALTHY,
    ),
    "nemo loses a rank: who is killed with all others is no victim of its own": (
        NEMO
        + "[rank: 1] Child process with PID 4711 terminated with code -11. Forcefully terminating"
        " all other processes to avoid zombies 🧟\nKilled\n",
        Told("crashed", "native-crash", (1,), "SIGSEGV"),
    ),
    "nemo-run names the role before the rank": (
        "i.pretraining/0 [default0]:Training epoch 0, iteration 0/999 | global_step: 0\n"
        + "".join(f"i.pretraining/0 [default1]:[rank1]: {line}\n" for line in FRAMES.splitlines())
        + "i.pretraining/0 [default1]:[rank1]: KeyError: 'tokens'\n",
        Told("crashed", "user-exception", (1,)),
    ),
    "lightning under slurm with other numbers": (
        FRAMES
        + "ValueError: You set `devices=8` in Lightning, but the number of tasks per node configured"
        " in SLURM `--ntasks-per-node=4` does not match. HINT: Set `devices=4`.\n",
        Told("crashed", "world-size-mismatch"),
    ),
    "ultralytics tells only that its ranks failed": (
        FRAMES
        + '  File "/opt/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", line 198,'
        " in train\n    subprocess.run(cmd, check=True)\n"
        "subprocess.CalledProcessError: Command '['/env/bin/python', '-m', 'torch.distributed.run',"
        " '--nproc_per_node', '2', '/tmp/ddp.py']' returned non-zero exit status 1.\n",
        Told("crashed", "unknown"),
    ),
    "databricks tells only that its ranks failed": (
        "step 10 loss 2.1\n"
        + FRAMES
        + "RuntimeError: TorchDistributor failed during training.View stdout logs for detailed"
        " error message.\n",
        Told("crashed", "unknown"),
    ),
    "databricks loses its process": (
        (
            "step 10 loss 2.1\nFatal error: The Python kernel is unresponsive.\nThe Python process"
            " exited with exit code 139 (SIGSEGV: Segmentation fault).\n"
        ),
        Told("crashed", "native-crash"),
    ),
    "a task of ray: the exception is the task's": (
        VERL
        + FRAMES
        + "ray.exceptions.RayTaskError(KeyError): ray::TaskRunner.run() (pid=4101, ip=10.0.0.5,"
        " actor_id=12ab, repr=<main_ppo.TaskRunner object>)\n"
        '  File "/home/ann/reward.py", line 12, in compute_score\n    return table[key]\n'
        "KeyError: 'answer'\n",
        Told("crashed", "user-exception", (), "KeyError: 'answer' at reward.py:12"),
    ),
    "vllm's engine repeats what a worker said": (
        VLLM
        + "".join(
            f"(Worker_TP1 pid=4202) ERROR 02-03 10:01:20 [multiproc_executor.py:671] {line}\n"
            for line in (
                "Traceback (most recent call last):",
                '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker.py", line 6, in run',
                "    output = func()",
                "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            )
        )
        + ENGINE_DEAD,
        Told("crashed", "illegal-memory-access", (1,)),
    ),
    "vllm loses a worker without a word": (
        VLLM
        + "(EngineCore_DP0 pid=4100) ERROR 02-03 10:31:20 [multiproc_executor.py:231] Worker proc"
        " VllmWorker-1 died unexpectedly, shutting down executor.\n" + ENGINE_DEAD,
        Told("crashed", "unknown", (1,), "died unexpectedly"),
    ),
    "a worker of vllm does not answer": (
        VLLM + "(EngineCore_DP0 pid=4100) Traceback (most recent call last):\n"
        '(EngineCore_DP0 pid=4100)   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/executor/'
        'multiproc_executor.py", line 264, in collective_rpc\n'
        "(EngineCore_DP0 pid=4100)     result = get_response(w)\n"
        "(EngineCore_DP0 pid=4100) TimeoutError: RPC call to execute_model timed out.\n"
        + ENGINE_DEAD,
        Told("hung", "unknown"),
    ),
    "horovod names who does not come": (
        HOROVOD
        + "[1,0]<stderr>:[2031-02-03 10:05:00.120: W horovod/common/stall_inspector.cc:107] One or"
        " more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and"
        " are waiting for remainder of ranks for more than 60 seconds.\n"
        "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:1: [allreduce.fc1.weight, allreduce.fc1.bias"
        " ...]\n",
        Told("hung", "unknown", (1,), "did not"),
    ),
    "horovodrun names who ended first": (
        HOROVOD
        + "Process 1 exit with status code 1.\nTerminating remaining workers after failure of"
        " Process 1.\nProcess 0 exit with status code 143.\n"
        + FRAMES
        + "RuntimeError: Horovod detected that one or more processes exited with non-zero status,"
        " thus causing the job to be terminated. The first process to do so was:\n"
        "Process name: 1\nExit code: 1\n",
        Told("crashed", "unknown", (1,), "exit code 1"),
    ),
    "the rest of horovod's ranks are shut down": (
        HOROVOD
        + "".join(f"[1,1]<stderr>:{line}\n" for line in FRAMES.splitlines())
        + "[1,1]<stderr>:ValueError: bad row 12\n"
        + "".join(f"[1,0]<stderr>:{line}\n" for line in FRAMES.splitlines())
        + "[1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut"
        " down. This was caused by an exception on one of the ranks or an attempt to allreduce\n",
        Told("crashed", "user-exception", (1,), "bad row 12"),
    ),
    "sagemaker's limit": (
        (
            "[1,mpirank:0,algo-1]<stdout>:step 10 loss 2.1\n"
            "2031-02-03 10:00:00 MaxRuntimeExceeded - Training job runtime exceeded\n"
        ),
        Told("crashed", "preempted-or-hangup"),
    ),
    "pbs counts processors": (
        "step 10 loss 2.1\n=>> PBS: job killed: ncpus 71.2 exceeded limit 16 (sum)\n",
        Told("crashed", "preempted-or-hangup"),
    ),
    "windows": (
        (
            "[rank1]: Traceback (most recent call last):\n"
            '[rank1]:   File "D:\\proj\\train.py", line 30, in main\n'
            '[rank1]:     raise ValueError("bad row")\n'
            "[rank1]: ValueError: bad row\n"
            "E0502 10:01:10.200000 5100 torch\\distributed\\elastic\\multiprocessing\\api.py:882] failed"
            " (exitcode: 1) local_rank: 1 (pid: 5104) of binary: C:\\envs\\t\\python.exe\n"
        ),
        Told("crashed", "user-exception", (1,), "train.py:30"),
    ),
    "windows without libuv": (
        FRAMES
        + "RuntimeError: use_libuv was requested but PyTorch was build without libuv support\n",
        Told("crashed", "library-version-conflict", (), "This build of torch has not got libuv"),
    ),
    "a watchdog's abort that a supervisor retells": (
        (
            "[rank0]: step 10 loss 2.1\nc10d::ProcessGroupNCCL::Watchdog::run() -> SIGABRT -> Fatal"
            " Python error: Aborted\n"
        ),
        Told("hung", "unknown"),
    ),
    "macos": (
        (
            'Traceback (most recent call last):\n  File "/Users/ann/train.py", line 8, in <module>\n'
            "    torch.cuda.set_device(0)\n"
            '  File "/opt/homebrew/lib/python3.11/site-packages/torch/cuda/__init__.py", line 404, in'
            " set_device\n    torch._C._cuda_setDevice(device)\n"
            "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'\n"
        ),
        Told("crashed", "cpu-only-torch"),
    ),
    "tensorboard's noise": (
        (
            "2031-02-03 10:00:00.120000: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:477]"
            " Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one"
            " has already been registered\n"
            "E0000 00:00:1746180000.123456    4101 cuda_dnn.cc:8310] Unable to register cuDNN factory\n"
            "TensorBoard 2.16.2 at http://localhost:6006/ (Press CTRL+C to quit)\n"
            "epoch 1 step 10 loss 2.1\nepoch 1 step 20 loss 2.0\ntraining finished\n"
        ),
        HEALTHY,
    ),
}


@pytest.mark.parametrize(("text", "told"), LOGS.values(), ids=list(LOGS))
def test_the_forms_of_frameworks_are_understood(text: str, told: Told, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(text, encoding="utf-8")
    report = explain(str(log))
    first = report.causes[0] if report.causes else None

    assert (report.verdict, first.id if first else "") == (told.verdict, told.cause), report
    if first is not None:
        assert (first.ranks, told.says in first.summary) == (told.ranks, True), first.summary
