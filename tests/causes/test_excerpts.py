"""Excerpts as people paste them into a thread: a few lines, stacks in another layout, calls that
only arithmetic tells apart. Each with the cause that must stand first and the verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gallery.logs.score import judged
from trainprobe.model.diagnosis import Report
from trainprobe.pipelines import explain
from trainprobe.stacks.classify import classify
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.stack_text import parse_stack_text

W = "Watchdog caught collective operation timeout: WorkNCCL"


def watchdog(rank: int, number: int, op: str, sizes: tuple[int, int], limit_s: int = 600) -> str:
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] {W}(SeqNum={number}, OpType={op},"
        f" NumelIn={sizes[0]}, NumelOut={sizes[1]}, Timeout(ms)={limit_s * 1000}) ran for"
        f" {limit_s * 1000 + 7} milliseconds before timing out."
    )


def last_work(rank: int, number: int) -> str:
    return (
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:1785] [PG ID 3 PG GUID 5 Rank {rank}] Exception"
        f" (either an error or timeout) detected by watchdog at work: {number}, last enqueued NCCL"
        f" work: {number + 4}, last completed NCCL work: {number - 1}."
    )


FIRST = "torch_distributed_zero_first"
EXCERPTS: dict[str, tuple[str, str, list[str]]] = {
    "a loss that became nan and stayed it": (
        "nan-loss",
        "at-risk",
        [
            "steps:  2%|▏     | 2/90 [00:08<05:40, 4.1s/it, loss=0.71, lr=1e-6]",
            "steps:  3%|▎     | 3/90 [00:12<05:36, 4.1s/it, loss=nan, lr=2e-6]",
            "steps:  4%|▍     | 4/90 [00:16<05:32, 4.1s/it, loss=nan, lr=2e-6]",
        ],
    ),
    "a driver that cannot tell what the process holds accuses nobody": (
        "cuda-oom",
        "crashed",
        [
            (
                "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.91 GiB. GPU 5"
                " has a total capacity of 79.15 GiB of which 1.02 GiB is free. Including non-PyTorch"
                " memory, this process has 0 bytes memory in use. Of the allocated memory 51.00 GiB is"
                " allocated by PyTorch, and 2.10 GiB is reserved by PyTorch but unallocated."
            )
        ],
    ),
    "sizes that are twelve and fourteen rows of one width are batches": (
        "collective-shape-mismatch",
        "hung",
        [
            watchdog(0, 512, "_ALLGATHER_BASE", (12 * 768, 24 * 768)),
            watchdog(1, 512, "_ALLGATHER_BASE", (14 * 768, 28 * 768)),
        ],
    ),
    "a size that was cut off is no other size": (
        "unknown",
        "hung",
        [
            (
                f"[E ProcessGroupNCCL.cpp:474] [Rank 1] {W}(SeqNum=1, OpType=ALLREDUCE, NumelIn=1,"
                " NumelOut=1, Timeout(ms)=1800000) ran for 1800762 milliseconds before timing out."
            ),
            (
                f"what():  [Rank 0] NCCL watchdog thread terminated with exception: [Rank 0] {W}(SeqNum=1,"
                " OpType=ALLREDUCE, Num"
            ),
        ],
    ),
    "the name of a client that connected all the same": (
        "wrong-network-interface",
        "undetermined",
        [
            (
                "[rank1]:[W308 06:05:19.749 socket.cpp:204] [c10d] The hostname of the client socket"
                " cannot be retrieved. err=-3"
            ),
            "(Worker rank=1 pid=606) INFO 03-08 06:05:19 [utils.py:990] Found nccl from library",
            "(Worker rank=1 pid=606) INFO 03-08 06:05:19 [pynccl.py:69] using nccl==2.21.5",
        ],
    ),
    "a collective behind a bar that is full": (
        "rank-conditional-collective",
        "hung",
        [
            "100%|██████████| 40/40 [06:54<00:00, 10.37s/it]",
            (
                f"[E ProcessGroupNCCL.cpp:828] [Rank 0] {W}(SeqNum=911, OpType=_ALLGATHER_BASE,"
                " Timeout(ms)=600000) ran for 600649 milliseconds before timing out."
            ),
        ],
    ),
    "frames of gloo that waits for the addresses of all ranks": (
        "rendezvous-incomplete",
        "undetermined",
        [
            "frame #8: gloo::rendezvous::PrefixStore::wait(std::vector<std::string> const&) + 0x3f",
            "frame #9: gloo::transport::tcp::Context::createAndConnectAllPairs(std::shared_ptr<Store>)",
        ],
    ),
    "a queue pair that cannot be set up, in the words of another library": (
        "ib-roce-misconfig",
        "crashed",
        ["port_state: ACTIVE", "Failed to modify QP to RTR: Connection timed out", "errno: 110"],
    ),
    "sizes far from each other are layers": (
        "rank-divergent-forward",
        "hung",
        [
            watchdog(0, 512, "_ALLGATHER_BASE", (4096 * 4096, 2 * 4096 * 4096)),
            watchdog(1, 512, "_ALLGATHER_BASE", (4096 * 11008, 2 * 4096 * 11008)),
        ],
    ),
    "the watchdog's own way to end a rank is no native crash": (
        "rank0-long-task",
        "hung",
        [
            "train: Scanning 'a/labels'... 900 found:  61%|██████    | 900/1480 [10:03<05:11, 1.9it/s]",
            watchdog(1, 3, "ALLREDUCE", (1, 1)),
            "terminate called after throwing an instance of 'std::runtime_error'",
        ],
    ),
    "the store that gave up beside a bar of the limit": (
        "rank0-long-task",
        "hung",
        [
            "Packing rows:  92%|█████████▏| 328986/359152 [29:58<12:05, 41.59 examples/s]",
            (
                "[rank1]:[W516 14:34:56.854 socket.cpp:489] [c10d] waitForInput: socket"
                " SocketImpl(fd=79, addr=[localhost]:41170, remote=[localhost]:29500) timed out"
                " after 1800000ms"
            ),
        ],
    ),
    "a save that was announced and did not end": (
        "rank0-long-task",
        "hung",
        [
            "INFO:lib.log:Saving checkpoint. This may take some time.",
            watchdog(3, 9387, "ALLREDUCE", (1, 1)),
        ],
    ),
    "gathers that were coalesced into one call, and one line that names no group": (
        "collective-shape-mismatch",
        "hung",
        [
            watchdog(1, 88, "COALESCED", (4096, 16384)),
            watchdog(3, 88, "COALESCED", (5120, 20480)),
            last_work(3, 88),
        ],
    ),
    "two ranks that gave up at different calls waited for each other": (
        "rank-conditional-collective",
        "hung",
        [
            watchdog(0, 412, "_ALLGATHER_BASE", (64, 128), 1800),
            watchdog(1, 414, "_ALLGATHER_BASE", (64, 128), 1800),
        ],
    ),
    "numbers too far apart to be of one group": (
        "unknown",
        "hung",
        [
            watchdog(0, 51_200, "ALLREDUCE", (8192, 8192), 1800),
            watchdog(5, 17_064, "ALLREDUCE", (8192, 8192), 1800),
        ],
    ),
    "bars without a length, of which some had run on": (
        "uneven-inputs",
        "hung",
        [
            *(
                f"Train 4 Rank {rank}, of 4: 52batch [00:05, 9.8{rank}batch/s]"
                for rank in (0, 2, 3)
            ),
            watchdog(1, 6233, "ALLTOALL_BASE", (640, 640), 1800),
            "Train 4 Rank 1, of 4: 40batch [30:04, 45.12s/batch]",
        ],
    ),
    "the store that the agents share gives up before a rank has said a word": (
        "rendezvous-incomplete",
        "hung",
        [
            "W0812 10:11:12.310000 1401 torch/distributed/run.py:779]",
            (
                "W0812 10:11:12.310000 1401 torch/distributed/run.py:779] Setting OMP_NUM_THREADS"
                " environment variable for each process to be 1 in default"
            ),
            "torch.distributed.DistStoreError: Socket Timeout",
        ],
    ),
    "agents that tell one another their roles": (
        "rendezvous-incomplete",
        "hung",
        [
            (
                '  File "/env/torch/distributed/elastic/agent/server/api.py", line 611, in'
                " _share_and_gather"
            ),
            "    role_infos_bytes = store_util.synchronize(",
            '  File "/env/torch/distributed/elastic/utils/store.py", line 34, in get_all',
            '    data = store.get(f"{prefix}{idx}")',
            "RuntimeError: Socket Timeout",
        ],
    ),
    "a thread of the loader that died, and nothing behind it": (
        "address-space-limit",
        "crashed",
        [
            "Epoch: [3][120/900] loss 1.93",
            "Epoch: [3][121/900] loss 1.92",
            "Exception in thread Thread-8:",
            "Traceback (most recent call last):",
            '  File "/env/torch/utils/data/_utils/pin_memory.py", line 30, in do_one_step',
            "    r = in_queue.get(timeout=5)",
            '  File "/usr/lib/python3.9/multiprocessing/queues.py", line 122, in get',
            "    return _ForkingPickler.loads(res)",
            (
                "RuntimeError: unable to mmap 4096 bytes from file <filename not specified>: Cannot"
                " allocate memory (12)"
            ),
        ],
    ),
    "a bar of the limit before a traceback without its blanks and its end": (
        "rank0-long-task",
        "crashed",
        [
            (
                "Tokenizing rows: 61%|██████    | 20100/33000 [29:58<19:14, 11.17"
                " examples/s]Traceback (most recent call last):"
            ),
            'File "/job/train.py", line 14, in',
            "main()",
            'File "/job/train.py", line 9, in main',
            "fit(options)",
            'File "/job/data.py", line 66, in fit',
        ],
    ),
    "the summary of a tracker that does not come back": (
        "remote-service-wait",
        "undetermined",
        [
            "wandb: - 11.52MB of 11.52MB uploaded (0.00MB deduped)",
            "wandb:",
            "wandb: Run history:",
            "wandb:  train/loss ▇▅▃▂▁",
        ],
    ),
    "a bar that ran for as long as the others wait": (
        "rank0-long-task",
        "hung",
        [
            " 41%|████      | 9021/22002 [10:04<14:29, 14.93it/s]",
            (
                f"[E ProcessGroupNCCL.cpp:485] [Rank 2] {W}(OpType=ALLREDUCE, Timeout(ms)=600000) ran"
                " for 602246 milliseconds before timing out."
            ),
        ],
    ),
    "a message that ends where the terminal did": (
        "rank0-long-task",
        "crashed",
        [
            (
                "torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving"
                " ncclUniqueId from [0] via c1"
            )
        ],
    ),
    "a monitored barrier that blames rank 0": (
        "rank0-long-task",
        "hung",
        [
            "Map (num_proc=8):  33%|███       | 1200/3600 [2:10:00<4:21:00, 6.50 s/examples]",
            (
                "[E ProcessGroupGloo.cpp:138] Rank 1 successfully reached monitoredBarrier, but"
                " received errors while waiting for send/recv from rank 0. Please check ra"
            ),
        ],
    ),
    "Ctrl-C where one rank goes first": (
        "rank0-long-task",
        "hung",
        [
            "Traceback (most recent call last):",
            '  File "/home/u/fit.py", line 12, in <module>',
            "    loader = build(args)",
            '  File "/env/lib/python3.9/site-packages/yolo/train.py", line 48, in get_loader',
            f"    with {FIRST}(rank):  # build the cache once",
            '  File "/env/lib/python3.9/contextlib.py", line 119, in __enter__',
            "    return next(self.gen)",
            "KeyboardInterrupt",
        ],
    ),
    "each node numbers its processes from 0": (
        "world-size-mismatch",
        "hung",
        [f"initializing ddp: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/4" for rank in (1, 0, 1, 0)],
    ),
    "a lock that is still asked for in the last line": (
        "file-lock-held",
        "hung",
        [
            "12:00:01 DEBUG filelock: Attempting to acquire lock 77 on /mnt/c/a.lock",
            "12:00:01 DEBUG filelock: Lock 77 not acquired on /mnt/c/a.lock, waiting 0.05 seconds",
            "12:00:02 DEBUG filelock: Attempting",
        ],
    ),
    "a lock that several asked for and nobody got": (
        "file-lock-held",
        "hung",
        [
            f"10:11:1{n} DEBUG filelock: Attempting to acquire lock 40{n} on /home/u/kernels.lock"
            for n in (1, 2)
        ],
    ),
    "a lock that was got is none that is waited for": (
        "none",
        "undetermined",
        [
            "10:11:11 DEBUG filelock: Attempting to acquire lock 41 on /home/u/a.lock",
            "10:11:11 DEBUG filelock: Lock 41 acquired on /home/u/a.lock",
        ],
    ),
    "ranks that did not come to the store's barrier when the log ends": (
        "rendezvous-incomplete",
        "hung",
        [
            (
                "INFO torch.distributed: Waiting in store based barrier to initialize process group"
                f" for rank: {rank}, key: store_based_barrier_key:1 (world_size=8, worker_count=7,"
                " timeout=0:30:00)"
            )
            for rank in (1, 4)
        ],
    ),
    "a watchdog's message broken into lines by hand, after the end of the training": (
        "rank-conditional-collective",
        "hung",
        [
            "INFO fit: training finished after 3 epochs",
            "[Rank 0] Watchdog caught collective operation timeout:",
            "    WorkNCCL(SeqNum=…, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,",
            "    Timeout(ms)=600000) ran for 600071 milliseconds",
        ],
    ),
    "rank 0 alone in a barrier behind the last word of the trainer": (
        "rank-conditional-collective",
        "hung",
        [
            "`Trainer.fit` stopped: `max_steps=400` reached.",
            watchdog(0, 5120, "ALLREDUCE", (1, 1), 1800),
        ],
    ),
    "a rank that had done all that it had enqueued, of a call without a number": (
        "rank-stuck",
        "hung",
        [
            "[Rank 0] Watchdog caught collective operation timeout:",
            "  WorkNCCL(..., OpType=_REDUCE_SCATTER_BASE, NumelIn=4096, NumelOut=512)",
            "[Rank 2] Last enqueued NCCL work: 880, last completed NCCL work: 880",
            "[Rank 0/1/3] Last enqueued NCCL work: 881, last completed",
        ],
    ),
    "one bar that goes back while its clock goes on": (
        "rank-conditional-collective",
        "hung",
        [
            " 12%|█▏        | 240/2000 [1:40:00<12:13:20, 25.00s/it]",
            " 12%|█▏        | 237/2000 [1:40:02<12:24:05, 25.32s/it]",
            watchdog(1, 70412, "ALLREDUCE", (525336, 525336)),
        ],
    ),
    "steps of two ranks, one of which left some out": (
        "rank-conditional-collective",
        "hung",
        [
            "train:  5%|▌         | 52/1000 [08:40<2:38:00, 10.00s/it]",
            "train:  5%|▍         | 48/1000 [08:50<2:55:20, 11.05s/it]",
            watchdog(0, 912, "ALLREDUCE", (88064, 88064)),
        ],
    ),
    "a bar of an evaluation that had run for one limit, drawn once more": (
        "rank0-long-task",
        "hung",
        [
            "  epoch 0: 100%|██████████| 900/900 [40:00<00:00, 2.67s/it]",
            "  Class  Images  mAP:  30%|███       | 300/1009 [10:02<23:27, 2.01s/it]",
            watchdog(1, 7001, "BROADCAST", (1, 1)),
            "  Class  Images  mAP:  30%|███       | 301/1009 [10:04<23:25, 2.01s/it]",
        ],
    ),
    "a bar of torch's own limit, where the message tells none": (
        "rank0-long-task",
        "crashed",
        [
            "Running tokenizer on rows:  44%|████      | 440/1000 [30:10<38:20, 4.11s/ examples]",
            (
                "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from"
                " [0] via c10d key-value store by key '0', but store->get('0') got error: Soc"
            ),
        ],
    ),
    "gradients of other layers at other calls": (
        "rank-divergent-forward",
        "hung",
        [
            watchdog(0, 310, "ALLREDUCE", (90177536, 90177536)),
            *(watchdog(rank, 316, "ALLREDUCE", (4096, 4096)) for rank in (1, 2)),
        ],
    ),
    "layers of other sizes at other calls": (
        "rank-divergent-forward",
        "hung",
        [
            *(watchdog(rank, 77, "_ALLGATHER_BASE", (8192, 65536), 1800) for rank in (0, 1, 3)),
            watchdog(2, 74, "_ALLGATHER_BASE", (1048576, 8388608), 1800),
        ],
    ),
    "a comparison of calls that was cut off, of one element": (
        "rank-conditional-collective",
        "crashed",
        [
            (
                "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
                " collective: CollectiveFingerPrint(SequenceNumber=88, OpType=BROADCAST,"
                " TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=TensorOptions(dtype=float"
            )
        ],
    ),
    "bars of ranks with other numbers of batches, at the end of the shortest": (
        "uneven-inputs",
        "undetermined",
        [
            "100%",
            "9119/9126 [1:12:31<00:03, 2.10it/s]",
            "100%",
            "9119/9121 [1:12:31<00:01, 2.10it/s]",
            "100%",
            "9119/9124 [1:12:31<00:02, 2.09it/s]",
        ],
    ),
    "bars of other lengths with their names": (
        "uneven-inputs",
        "undetermined",
        [
            "Epoch 2: 100%|█████████▉| 799/800 [08:00<00:00, 1.66it/s]",
            "Epoch 2:  99%|█████████▉| 799/806 [08:00<00:04, 1.66it/s]",
        ],
    ),
    "bars of other lengths in the midst are ranks at work": (
        "none",
        "undetermined",
        [
            "Epoch 2:  50%|████▉     | 399/800 [04:00<04:00, 1.66it/s]",
            "Epoch 2:  50%|████▉     | 399/806 [04:00<04:04, 1.66it/s]",
        ],
    ),
    "a bar without its blocks, of an evaluation longer than the limit": (
        "rank0-long-task",
        "hung",
        [
            "   Class   Images   Labels   mAP@.5:  72% 23/32 [01:02<00:25,  2.80s/it]",
            watchdog(1, 77, "BROADCAST", (1, 1), 60),
            watchdog(2, 77, "BROADCAST", (1, 1), 60),
        ],
    ),
    "a watchdog's message of which the terminal lost the beginning": (
        "unknown",
        "hung",
        [
            (
                "ctive operation timeout: WorkNCCL(SeqNum=81784, OpType=_ALLGATHER_BASE,"
                " NumelIn=6288000, NumelOut=50304000, Timeout(ms)=1800000) ran for 1800006"
                " milliseconds before timing out."
            )
        ],
    ),
    "sizes of activations differ, not those of layers": (
        "collective-shape-mismatch",
        "crashed",
        [
            (
                "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
                " collective: CollectiveFingerPrint(SequenceNumber=4, OpType=_ALLGATHER_BASE,"
                " TensorShape=[2, 8, 31], TensorDtypes=Float), but Rank 0 is running collective:"
                " CollectiveFingerPrint(SequenceNumber=4, OpType=_ALLGATHER_BASE, TensorShape=[2,"
                " 8, 30], TensorDtypes=Float)."
            )
        ],
    ),
    "the watchdog's loop ended the process": (
        "unknown",
        "hung",
        ["c10d::ProcessGroupNCCL::Watchdog::run() -> SIGABRT", "Fatal Python error: Aborted"],
    ),
    "Ctrl-C at a build's lock, on Windows": (
        "extension-build-lock",
        "hung",
        [
            "^CTraceback (most recent call last):",
            '  File "D:\\work\\ops.py", line 4, in <module>',
            "    ops = load(name='ops', sources=['ops.cu'])",
            '  File "C:\\py\\Lib\\site-packages\\torch\\utils\\cpp_extension.py", line 1301, in load',
            "    return _jit_compile(",
            '  File "C:\\py\\Lib\\site-packages\\torch\\utils\\file_baton.py", line 42, in wait',
            "    time.sleep(self.wait_seconds)",
            "KeyboardInterrupt",
        ],
    ),
    "Horovod lists what each rank lacks": (
        "rank-conditional-collective",
        "hung",
        [
            (
                "[0]<stderr>:W horovod/common/stall_inspector.cc:105] One or more tensors were"
                " submitted to be reduced, gathered or broadcasted by subset of ranks and are"
                " waiting for remainder of ranks for more than 60 seconds."
            ),
            "[0]<stderr>:Missing ranks:",
            "[0]<stderr>:0: [broadcast.count.sz]",
            "[0]<stderr>:1: [allreduce.fc.bias, allreduce.fc.weight ...]",
        ],
    ),
    "a monitored barrier's own word against what the others guess": (
        "unknown",
        "hung",
        [
            (
                "[E ProcessGroupGloo.cpp:138] Rank 3 successfully reached monitoredBarrier, but"
                " received errors while waiting for send/recv from rank 0. Please check rank 0 logs"
            ),
            (
                "[E ProcessGroupGloo.cpp:138] [Rank 0]: Rank 2 failed to pass monitoredBarrier in"
                " 600000 ms"
            ),
        ],
    ),
    "gloo's timeout of old": (
        "unknown",
        "hung",
        [
            "Traceback (most recent call last):",
            '  File "fit.py", line 88, in step',
            "    dist.all_reduce(flat)",
            (
                "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/buffer.cc:76] Read"
                " timeout [127.0.0.1]:30121"
            ),
        ],
    ),
    "a bar that is drawn a second time is no rank that leads": (
        "rank0-long-task",
        "hung",
        [
            "100%|██████████| 1818/1818 [00:00<00:00, 68495.35it/s]",
            "caching latents...",
            " 87%|████████▋ | 1582/1818 [30:02<04:26,  1.13s/it]",
            watchdog(1, 3, "ALLREDUCE", (1, 1), 1800),
        ],
    ),
    "work that was announced in words of its own": (
        "rank0-long-task",
        "hung",
        [
            "12:01:07 INFO Merging the adapter into the base weights",
            watchdog(3, 8821, "ALLREDUCE", (1, 1), 1800),
        ],
    ),
    "a save that was announced, behind which the training went on": (
        "unknown",
        "hung",
        [
            "12:01:07 INFO Merging the adapter into the base weights",
            "step 120/4000 loss 1.25",
            "step 121/4000 loss 1.24",
            watchdog(3, 8821, "ALLREDUCE", (4096, 4096), 1800),
        ],
    ),
    "the watchdog's second line alone, behind a save": (
        "rank0-long-task",
        "hung",
        [
            "INFO:lib.log:Saving checkpoint. This may take some time. Retrieving full model state...",
            (
                "[rank7]:[E1130 09:16:57.6 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID"
                " 0(default_pg) Rank 7] Timeout at NCCL work: 28956, last enqueued NCCL work:"
                " 28956, last completed NCCL work: 28955."
            ),
        ],
    ),
    "an actor of Ray, whose training thread waits for its loader": (
        "data-worker-stuck",
        "hung",
        [
            "Process 4711: ray::RayTrainWorker",
            'Thread 4711 (idle): "MainThread"',
            "    main_loop (ray/_private/worker.py:946)",
            "    <module> (ray/_private/workers/default_worker.py:330)",
            'Thread 4790 (idle): "TrainingThread(fit)"',
            "    select (selectors.py:416)",
            "    wait (multiprocessing/connection.py:931)",
            "    poll (multiprocessing/connection.py:257)",
            "    get (multiprocessing/queues.py:113)",
            "    _try_get_data (torch/utils/data/dataloader.py:1133)",
            "    __next__ (torch/utils/data/dataloader.py:631)",
            "    fit (fit.py:88)",
        ],
    ),
    "a loader whose pinning thread gets nothing": (
        "data-worker-stuck",
        "hung",
        [
            'Thread (idle): "MainThread"',
            "    wait (threading.py:359)",
            "    get (queue.py:180)",
            "    _try_get_data (torch/utils/data/dataloader.py:1310)",
            "    __next__ (torch/utils/data/dataloader.py:741)",
            "    epoch (train.py:40)",
            'Thread (idle): "Thread-3 (_pin_memory_loop)"',
            "    select (selectors.py:415)",
            "    wait (multiprocessing/connection.py:1136)",
            "    get (multiprocessing/queues.py:113)",
        ],
    ),
    "done, and yet somebody had to press Ctrl-C": (
        "unknown",
        "hung",
        [
            "INFO fit: done training in 162.1 seconds",
            "^CTraceback (most recent call last):",
            '  File "/env/lib/python3.9/runpy.py", line 193, in _run_module_as_main',
        ],
    ),
    "frames of the watchdog, and two processes that died in one line": (
        "unknown",
        "hung",
        [
            (
                "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono"
                "::duration<long, std::ratio<1l, 1000l> > >) + 0x1e1 (0x7f in libtorch_cuda.so)"
            ),
            (
                "terminate called after throwing an instance of 'terminate called after throwing an"
                " instance of 'c10::DistBackendError'"
            ),
            "c10::DistBackendError'",
        ],
    ),
    "a download that still waits for a lock": (
        "file-lock-held",
        "hung",
        [
            "fetching encoder",
            "Still waiting to acquire lock on /w/cache/.locks/encoder.lock (elapsed: 0.1 seconds)...",
        ],
    ),
    "a download that waits for a lock, again and again": (
        "file-lock-held",
        "hung",
        [
            f"still waiting to acquire lock on /w/.cache/download/a.bin.lock (elapsed: {s}.0 seconds)..."
            for s in (10, 20, 30)
        ],
    ),
    "a lone stack at a queue that a thread of its own fills": (
        "data-worker-stuck",
        "hung",
        [
            'Thread 0x7F00AA (idle): "MainThread"',
            "    wait (threading.py:320)",
            "    get (queue.py:171)",
            "    __next__ (fairseq/data/iterators.py:650)",
            "    epoch (fit.py:31)",
        ],
    ),
    "a lone stack in ZeRO's gathering": (
        "unknown",
        "hung",
        [
            'Thread 71 (active): "MainThread"',
            "    all_gather_coalesced (deepspeed/runtime/zero/partition_parameters.py:1254)",
            "    fetch_sub_module (deepspeed/runtime/zero/partitioned_param_coordinator.py:386)",
            "    forward (layers.py:76)",
        ],
    ),
    "a traceback that is cut off below the import of the script, on Windows": (
        "missing-main-guard",
        "crashed",
        [
            "Traceback (most recent call last):",
            '  File "D:\\tools\\miniconda3\\envs\\t\\lib\\multiprocessing\\spawn.py", line 125, in _main',
            "    prepare(preparation_data)",
            '  File "D:\\tools\\miniconda3\\envs\\t\\lib\\multiprocessing\\spawn.py", line 287, in _fixup_main_from_path',
            "    main_content = runpy.run_path(main_path,",
            '  File "D:\\rows\\fit.py", line 40, in <module>',
            "    helper.start()",
            '  File "D:\\tools\\miniconda3\\envs\\t\\lib\\multiprocessing\\process.py", line 121, in start',
            "    self._popen = self._Popen(self)",
        ],
    ),
    "a traceback that is cut off below the import of the script": (
        "missing-main-guard",
        "crashed",
        [
            "Traceback (most recent call last):",
            '  File "/py/lib/python3.11/multiprocessing/spawn.py", line 291, in _fixup_main_from_path',
            "    main_content = runpy.run_path(main_path,",
            '  File "/w/fit.py", line 12, in <module>',
            "    for rows in loader:",
            '  File "/py/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 441, in __iter__',
            "    return self._get_iterator()",
            '  File "/py/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 388, in _get_iterator',
            "    return _MultiProcessingDataLoaderIter(self)",
        ],
    ),
    "a cut-off traceback behind a failure that has a name": (
        "hostname-resolution",
        "crashed",
        [
            (
                "[W socket.cpp:601] [c10d] The IPv6 network addresses of (head.lab, 47218) cannot be"
                " retrieved (gai error: -5 - No address associated with hostname)."
            ),
            (
                "[E socket.cpp:860] [c10d] The client socket has timed out after 900s while trying to"
                " connect to (head.lab, 47218)."
            ),
            "Traceback (most recent call last):",
            '  File "/w/fit.py", line 55, in <module>',
            "    meet()",
        ],
    ),
    "a script that prints how it is used": (
        "launcher-args",
        "crashed",
        [
            "FutureWarning: The module torch.distributed.launch is deprecated and will be removed",
            "usage: fit.py [-h] [--rows DIR] [--local_rank N]",
            "              [--width N]",
        ],
    ),
    "a script in a folder that prints how it is used": (
        "launcher-args",
        "crashed",
        ["starting 4 processes", "usage: tools/run_net.py [-h] [--cfg FILE] [--opts ...]"],
    ),
    "faulthandler's dump without blanks and without the thread's line": (
        "extension-build-lock",
        "hung",
        [
            "Timeout (0:01:00)!",
            'File "/env/lib/python3.12/site-packages/torch/utils/file_baton.py", line 50 in wait',
            (
                'File "/env/lib/python3.12/site-packages/torch/utils/cpp_extension.py", line 2156 in'
                " _jit_compile"
            ),
            'File "/job/ops.py", line 7 in <module>',
        ],
    ),
    "a traceback of IPython's without its head that ends where an extension is loaded": (
        "extension-build-lock",
        "hung",
        [
            "File /env/lib/python3.11/site-packages/codec/pack.py:88, in Packer.load(cls, gpu)",
            "     86 print_message('Loading packing')",
            "---> 88 packing = load(",
            "     89     name='packing',",
            "",
            "File /env/lib/python3.11/site-packages/torch/utils/cpp_extension.py:1312, in load(name)",
        ],
    ),
    "a traceback without its head and its end that shows the wait for a build's lock": (
        "extension-build-lock",
        "hung",
        [
            "cuda 11.3",
            "",
            '  File "fit.py", line 5, in <module>',
            "    from net.encoder import Encoder",
            '  File "/job/net/encoder.py", line 9, in <module>',
            "    _ops = load(name='hash', sources=SOURCES)",
            '  File "/env/lib/python3.8/site-packages/torch/utils/cpp_extension.py", line 1156, in load',
            "    keep_intermediates=keep_intermediates)",
            (
                '  File "/env/lib/python3.8/site-packages/torch/utils/cpp_extension.py", line 1371,'
                " in _jit_compile"
            ),
            "    baton.wait()",
        ],
    ),
    "a traceback with variables between its frames that ends at the making of a group": (
        "rendezvous-incomplete",
        "hung",
        [
            '  File "/job/engine.py", line 40, in Engine.evaluate',
            "    line: for batch in self.loader:",
            "    locals:",
            "      batch = <not found>",
            (
                '  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line'
                " 386, in DataLoader._get_iterator"
            ),
            "    line: return _MultiProcessingDataLoaderIter(self)",
            "    locals:",
            "      self = <local> <torch.utils.data.dataloader.DataLoader object at 0x7fe8>",
            (
                '  File "/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line'
                " 570, in _BaseDataLoaderIter.__init__"
            ),
            '    line: self._pg = dist.new_group(backend="gloo")',
            "    locals:",
            "      dist = <global> <module 'torch.distributed'>",
        ],
    ),
    "a Ctrl-C that its worker shows, and of the program's own traceback the first frame": (
        "data-worker-stuck",
        "hung",
        [
            "Process Process-3:",
            "Traceback (most recent call last):",
            '  File "/usr/lib/python3.8/multiprocessing/process.py", line 297, in _bootstrap',
            "    self.run()",
            "KeyboardInterrupt",
            "Traceback (most recent call last):",
            '  File "fit.py", line 15, in main',
            "    batch = next(data_iter)",
        ],
    ),
    "ranks that gave up in different operations, without numbers": (
        "rank-conditional-collective",
        "hung",
        [
            f"[E ProcessGroupNCCL.cpp:566] [Rank {rank}] {W}(OpType={op}, Timeout(ms)=1800000) ran"
            f" for 180{rank}040 milliseconds before timing out."
            for rank, op in ((2, "REDUCE"), (0, "BROADCAST"), (1, "BROADCAST"), (4, "BROADCAST"))
        ],
    ),
    "one number with other sizes, beside calls of other numbers": (
        "collective-shape-mismatch",
        "hung",
        [
            watchdog(1, 340, "ALLREDUCE", (7012, 7012)),
            watchdog(0, 811, "ALLGATHER", (512, 2048)),
            watchdog(1, 811, "ALLGATHER", (500, 2000)),
            watchdog(3, 810, "ALLGATHER", (64, 256)),
        ],
    ),
    "the very first call, in which the ways between the GPUs may be lost as well": (
        "unknown",
        "hung",
        [watchdog(rank, 1, "BROADCAST", (1, 1), 1800) for rank in (3, 1)],
    ),
    "a tracker that tries again before the run has begun": (
        "remote-service-wait",
        "undetermined",
        [
            "wandb: W&B API key is configured. Use `wandb login --relogin` to force relogin",
            "wandb: Network error (ReadTimeout), entering retry loop.",
        ],
    ),
    "a signal whose line somebody wrote down by hand": (
        "preempted-or-hangup",
        "crashed",
        ["torch.distributed.elastic.multiprocessing.api.SignalException: Process 71 got sigval:1"],
    ),
    "an extension that was built before and is loaded": (
        "extension-build-lock",
        "undetermined",
        ["ninja: no work to do.", "Loading extension module hashgrid..."],
    ),
    "an extension whose load the program announces itself": (
        "extension-build-lock",
        "undetermined",
        [
            "[Aug 20, 14:19:44] #> 12 passages",
            "[Aug 20, 14:19:50] Loading packing_cpp extension (…)",
        ],
    ),
    "one process that prepares data, for which nobody waits": (
        "unknown",
        "undetermined",
        ["Map:  99% 986/1000 [00:07<00:00, 145.72 examples/s]"],
    ),
    "ranks that prepare data, of which one may be at it": (
        "rank0-long-task",
        "undetermined",
        ["world size 4, backend nccl", "Map:  41% 410/1000 [00:07<00:11, 58.1 examples/s]"],
    ),
    "a lock of the hub's, in the words of before its second try": (
        "file-lock-held",
        "hung",
        2 * ["still waiting to acquire lock on /home/u/.cache/huggingface/hub/.locks/m--a/4f.lock"],
    ),
    "a lock that is awaited in the program's own words": (
        "file-lock-held",
        "hung",
        3 * ["12:00:01 waiting for lock on /scratch/cache/tokens.lock"],
    ),
    "a barrier at the start to which the ranks of one node of two came": (
        "rendezvous-incomplete",
        "hung",
        [
            "[torch.distributed.distributed_c10d][INFO] - Waiting in store based barrier to"
            f" initialize process group for rank: {rank}, key: store_based_barrier_key:1"
            " (world_size=8, worker_count=4, timeout=0:30:00)"
            for rank in (0, 1, 2, 3)
        ],
    ),
    "an older Horovod that lists who has come": (
        "unknown",
        "hung",
        [
            "Stalled ops: HorovodBroadcast_logits_weights_0 [ready ranks: 5, 3, 1, 4, 0]",
            "HorovodBroadcast_logits_bias_0 [ready ranks: 5, 3, 1, 4, 0],",
        ],
    ),
    "a table of Ray's in which nothing has begun": (
        "launcher-args",
        "undetermined",
        [
            "Resources requested: 0/32 CPUs, 0/2 GPUs, 0.0/75.41 GiB heap",
            "Number of trials: 4/4 (4 PENDING)",
            "+----------------+----------+-------+---------------+",
            "| Trial name     | status   | loc   | env           |",
            "|----------------+----------+-------+---------------|",
            "| PPO_4c3f_00000 | PENDING  |       | Breakout      |",
            "| PPO_4c3f_00001 | PENDING  |       | Qbert         |",
            "+----------------+----------+-------+---------------+",
        ],
    ),
    "the first forward of a model whose activations DeepSpeed keeps": (
        "unknown",
        "undetermined",
        [
            (
                "[2031-12-02 16:53:57,799] [INFO] [checkpointing.py:547:forward] Activation"
                " Checkpointing Information"
            ),
            *(
                f"[2031-12-02 16:53:57,799] [INFO] [checkpointing.py:55{row}:forward] ----{words}"
                for row, words in enumerate(
                    ("Partition Activations False", "Synchronization False", "Profiling time in")
                )
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", EXCERPTS)
def test_an_excerpt_is_understood(name: str, tmp_path: Path) -> None:
    cause, verdict, lines = EXCERPTS[name]
    log = tmp_path / "log.txt"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")

    said = judged([str(log)])

    first = said["causes"][0]["id"] if said["causes"] else "none"
    assert (first, said["verdict"]) == (cause, verdict)


def test_sends_that_were_coalesced_may_differ_in_size(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    lines = [watchdog(rank, 9, "COALESCED", (size, size)) for rank, size in ((0, 64), (1, 128))]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert judged([str(log)])["causes"][0]["id"] != "collective-shape-mismatch"


def test_a_thread_of_py_spy_without_its_number_is_read() -> None:
    (process,) = parse_stack_text(
        'Thread (idle): "MainThread"\n    wait (threading.py:359)\n    get (queue.py:180)\n'
        "    step (train.py:9)\n"
    )

    assert [frame["name"] for frame in process.threads[0]["frames"]] == ["wait", "get", "step"]


@pytest.mark.parametrize(
    ("host", "nearest"), [("0a1b2c3d4e5f", "shm-exhausted"), ("gpu-node-7", "native-crash")]
)
def test_bus_errors_in_a_container_speak_for_its_shared_memory(
    host: str, nearest: str, tmp_path: Path
) -> None:
    table = [
        f"[{rank}]:\n  host      : {host}\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : -7 (pid: {70 + rank})\n"
        f"  traceback : Signal 7 (SIGBUS) received by PID {70 + rank}\n"
        for rank in (1, 0)
    ]
    log = tmp_path / "log.txt"
    log.write_text(f"Failures:\n{table[0]}Root Cause (first observed failure):\n{table[1]}")

    causes = [one["id"] for one in judged([str(log)])["causes"] if one["id"] != "unknown"]

    assert causes[0] == nearest


def test_what_was_raised_is_not_guessed_where_it_is_cut_off(tmp_path: Path) -> None:
    def told(head: str, last: str = "") -> dict[str, Any]:
        log = tmp_path / "log.txt"
        frames = '  File "/w/fit.py", line 7, in <module>\n    read_options()\n'
        log.write_text(f"{head}Traceback (most recent call last):\n{frames}{last}")
        return judged([str(log)])

    said = told("")

    assert said["verdict"] == "crashed"
    assert not any(cause["named"] and cause["confidence"] >= 0.8 for cause in said["causes"])
    assert told("^C") == told("", "KeyboardInterrupt\n")


def test_what_one_stack_does_not_show_is_not_said(tmp_path: Path) -> None:
    def told(*frames: str) -> Report:
        path = tmp_path / "dump.txt"
        path.write_text("\n".join(['Thread 0x7F (idle): "MainThread"', *frames]) + "\n")
        return explain([str(path)])

    inside = told("    all_reduce (deepspeed/comm/comm.py:500)", "    step (fit.py:9)")
    alone = told("    wait (threading.py:320)", "    get (queue.py:171)", "    step (fit.py:9)")

    assert "where the others stand is not told" in inside.says
    assert alone.causes[0].confidence < 0.8


def test_a_tracker_that_tries_again_beside_steps_holds_nothing_up(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    retry = "wandb: Network error (ReadTimeout), entering retry loop."
    log.write_text(f"step 1/9 loss 2.1\nstep 2/9 loss 2.0\n{retry}\n", encoding="utf-8")

    assert not any(one["named"] for one in judged([str(log)])["causes"])


def test_a_test_of_nccl_that_came_to_its_end_is_well(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    row = "        {}            16     float     sum      -1     8.56    0.01    0.01      0\n"
    log.write_text(f"{row.format(64)}{row.format(128)}# Avg bus bandwidth    : 5.1\n#\n")

    assert judged([str(log)]) == {"verdict": "healthy", "causes": []}


def test_numbered_lines_are_no_stack_of_gdb() -> None:
    assert parse_stack_text("#0 loss\n#1 loss\n") == []
    (process,) = parse_stack_text(
        "#0  __lll_lock_wait () at lock.c:41\n#1  0x7f in f () at a.c:3\n"
    )
    assert process.native


def test_a_traceback_that_is_cut_at_the_making_of_a_group_failed_of_nothing_else(
    tmp_path: Path,
) -> None:
    said = (
        "Waiting in store based barrier to initialize process group for rank: 0, key:"
        " store_based_barrier_key:1 (world_size=4, worker_count=16, timeout=0:01:00)\n"
    )
    frames = (
        'Traceback (most recent call last):\n  File "train.py", line 494, in main\n'
        '    dist.init_process_group(backend="nccl", timeout=timedelta(seconds=60))\n'
    )
    log = tmp_path / "log.txt"
    log.write_text(said * 3 + frames)
    first = judged([str(log)])["causes"][0]
    assert (first["id"], first["named"]) == ("world-size-mismatch", True)


def test_only_a_context_that_lets_one_rank_go_first_is_a_barrier() -> None:
    def leaf(line: str) -> str:
        frames = (
            Frame("main", "/job/train.py", 3),
            Frame("load", "/env/site-packages/lib/x.py", 8, f"with {line}:"),
            Frame("__enter__", "/usr/lib/python3.11/contextlib.py", 137, "return next(self.gen)"),
        )
        return classify(frames).leaf

    assert leaf(f"{FIRST}(rank)") == "comm-wait"
    assert leaf("open_cache(path)") != "comm-wait"
