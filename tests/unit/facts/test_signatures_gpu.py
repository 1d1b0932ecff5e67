"""Wordings of GPUs and of memory: each finds its own line and no look-alike, the numbers are
read, and fragments come to their cause.
"""

from __future__ import annotations

import pytest

from trainprobe.causes.gpu_memory import read_numbers
from trainprobe.facts.kernel_logs import OomKill, Xid, parse_kernel_log
from trainprobe.model.evidence import Evidence
from trainprobe.pipelines import explain
from trainprobe.signatures import all_signatures, match_line

OURS = [
    signature
    for signature in all_signatures()
    if signature.shows
    in {
        *(
            "cuda-oom",
            "cuda-fragmentation",
            "gpu-memory-of-others",
            "gpu-taken",
            "cublas-not-initialized",
            "bad-alloc",
            "oom-killer",
            "worker-sigkill",
            "sigkill",
        ),
        *(
            "pin-memory-failed",
            "pin-memory-frame",
            "object-collective-frame",
            "loading-weights",
            "cpu-offload",
            "no-gpu-visible",
            "cpu-only-torch",
        ),
        *(
            "cuda-not-available",
            "no-driver",
            "driver-too-old",
            "driver-mismatch",
            "forward-compatibility",
            "nvml-unknown",
            "fabric-manager",
        ),
        *(
            "no-kernel-image",
            "sm-not-supported",
            "device-assert",
            "index-range",
            "illegal-access",
            "launch-failure",
            "gpu-hang",
            "library-execution-failed",
        ),
        *(
            "ecc-error",
            "nvlink-error",
            "gpu-lost",
            "xid",
            "gpu-throttled",
            "wrong-results",
            "mps-backend",
            "device-mismatch",
            "gpu-synchronize-frame",
        ),
    }
]
GIB = 2**30


def shows(line: str) -> set[str]:
    return {hit.signature.shows for hit in match_line(line)}


@pytest.mark.parametrize("signature", OURS, ids=lambda signature: signature.id)
def test_a_wording_knows_its_example_and_none_of_its_look_alikes(signature: object) -> None:
    row = next(one for one in OURS if one is signature)

    assert row.source
    assert any(text in row.example for text in row.has)
    assert row.regex.search(row.example)
    for line in row.unlike:
        assert not (any(text in line for text in row.has) and row.regex.search(line)), line


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            (
                "RuntimeError: cuda runtime error (2) : out of memory at"
                " /pytorch/aten/src/THC/generic/THCStorage.cu:58"
            ),
            "cuda-oom",
        ),
        (
            (
                "RuntimeError: HIP out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.98 GiB"
                " total capacity; 14.90 GiB already allocated; 1 bytes free)"
            ),
            "cuda-oom",
        ),
        (
            (
                "RuntimeError: NPU out of memory. Tried to allocate 1.67 GiB (NPU 0; 32.00 GiB"
                " total capacity; 6.30 GiB already allocated)"
            ),
            "cuda-oom",
        ),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in step 81.0 cgroup.", "oom-killer"),
        (
            "slurmstepd: error: Job 81 exceeded memory limit (734003200 > 524288000), being killed",
            "oom-killer",
        ),
        ("81.batch   batch   OUT_OF_ME+   0:125", "oom-killer"),
        (
            "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            "oom-killer",
        ),
        ("zsh: killed     python train.py", "sigkill"),
        (
            "[launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
            "sigkill",
        ),
        ("Command '['python', 'a.py']' died with <Signals.SIGKILL: 9>.", "sigkill"),
        (
            (
                "/opt/aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [0,0,0],"
                " thread: [1,0,0] Assertion `-sizes[i] <= index` failed."
            ),
            "device-assert",
        ),
        (
            (
                "/tmp/cache/c7.py:23: unknown: block: [0,0,0], thread: [31,0,0] Assertion `index"
                " out of bounds: 0 <= tmp5 < 10` failed."
            ),
            "device-assert",
        ),
        (
            (
                "Memory access fault by GPU node-1 (Agent handle: 0x5) on address 0x7f. Reason:"
                " Unknown."
            ),
            "illegal-access",
        ),
        ("RuntimeError: CUDA error: misaligned address", "launch-failure"),
        ("kernel: NVRM: Xid (0000:03:00): 13, Graphics Exception: ESR 0x405840=0xa2040800", "xid"),
        (
            (
                "NVRM: Xid (PCI:0000:81:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen"
                " off the bus."
            ),
            "gpu-lost",
        ),
        ("Found GPU0 Tesla K80 which is of cuda capability 3.7.", "sm-not-supported"),
        ("RuntimeError: HIP error: invalid device function", "no-kernel-image"),
        (
            "RuntimeError: Failed to initialize NVML: Driver/library version mismatch",
            "driver-mismatch",
        ),
        ("RuntimeError: Placeholder storage has not been allocated on MPS device!", "mps-backend"),
        (
            (
                "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework"
                " doesn't support float64."
            ),
            "mps-backend",
        ),
    ],
)
def test_other_wordings_show_the_same(line: str, event: str) -> None:
    assert event in shows(line)


@pytest.mark.parametrize(
    "line",
    [
        "OOMKilled: false",
        "pin_memory: true, num_workers: 8",
        "        HW Thermal Slowdown               : Not Active",
        "killed time until the store answered",
        "max_memory_allocated 71.2 GiB of a total of 79.15 GiB",
        "Saving the optimizer state out of memory-mapped files",
        (
            "python: ../nptl/tpp.c:82: __pthread_tpp_change_priority: Assertion `new_prio == -1'"
            " failed."
        ),
        "GPU 2: OK",
    ],
)
def test_a_healthy_line_shows_nothing_fatal(line: str) -> None:
    assert not [hit.signature.id for hit in match_line(line) if hit.signature.means == "fatal"]


def test_numbers_of_an_old_message() -> None:
    text = (
        "Tried to allocate 2.00 GiB (GPU 3; 15.78 GiB total capacity; 8.12 GiB already allocated;"
        " 26.56 MiB free; 8.17 GiB reserved in total by PyTorch)"
    )
    numbers = read_numbers(text)

    assert (numbers.asked, numbers.gpu, numbers.reserved) == (2 * GIB, 3, 8.17 * GIB)
    assert numbers.held_by_others
    assert not numbers.in_pieces


def test_numbers_of_a_new_message() -> None:
    text = (
        "Tried to allocate 3.15 GiB. GPU 0 has a total capacity of 39.56 GiB of which 1.80 GiB is"
        " free. Including non-PyTorch memory, this process has 37.61 GiB memory in use. Of the"
        " allocated memory 31.66 GiB is allocated by PyTorch, and 5.11 GiB is reserved by PyTorch"
        " but unallocated."
    )
    numbers = read_numbers(text)

    assert numbers.in_pieces
    assert not numbers.held_by_others
    assert round((numbers.unallocated or 0) / GIB, 2) == 5.11


def test_a_driver_that_may_not_tell_counts_nothing() -> None:
    text = (
        "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 0 bytes is"
        " free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use."
    )

    assert read_numbers(text).mine is None
    assert not read_numbers(text).held_by_others


def test_the_kernel_tells_of_one_kill_in_three_lines() -> None:
    lines = [
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=python3,pid=5566,uid=1000",
        (
            "Memory cgroup out of memory: Killed process 5566 (python3) total-vm:91023344kB,"
            " anon-rss:66012340kB, file-rss:9000kB, shmem-rss:0kB"
        ),
        "Out of memory: Kill process 77 (python) score 900 or sacrifice child",
        "Killed process 77 (python) total-vm:91023344kB, anon-rss:1024kB, file-rss:0kB",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=41022, name=python, Ch 00000010, MMU Fault",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    ]
    record = Evidence(
        id="E1",
        kind="kernel_log",
        cell="job",
        data={"lines": [{"at": 1.0, "text": text} for text in lines]},
    )

    found = parse_kernel_log(record)

    kills = [fact for fact in found if isinstance(fact, OomKill)]
    assert [(kill.pid, kill.rss_bytes, kill.in_cgroup) for kill in kills] == [
        (5566, 66012340 * 1024, True),
        (77, 1024 * 1024, False),
    ]
    xids = [fact for fact in found if isinstance(fact, Xid)]
    assert [(xid.code, xid.pid, xid.name) for xid in xids] == [
        (31, 41022, "python"),
        (79, None, ""),
    ]


FRAGMENTS = [
    (
        "a label out of range, then cuBLAS",
        [
            (
                "../aten/src/ATen/native/cuda/Loss.cu:250: "
                "nll_loss_forward_reduce_cuda_kernel_2d: block: "
                "[0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed."
            ),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
                "`cublasCreate(handle)`"
            ),
        ],
        "device-assert-index-range",
    ),
    (
        "cuBLAS alone",
        [
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling "
                "`cublasCreate(handle)`"
            )
        ],
        "cuda-oom",
    ),
    (
        "the device is gone behind a launch failure",
        [
            "RuntimeError: CUDA error: unspecified launch failure",
            (
                "[ 1204.1] NVRM: Xid (PCI:0000:81:00): 79, pid='<unknown>', name=<unknown>, GPU "
                "has "
                "fallen off the bus."
            ),
        ],
        "gpu-fell-off-bus",
    ),
    (
        "a launch failure alone",
        ["RuntimeError: CUDA error: unspecified launch failure"],
        "illegal-memory-access",
    ),
    (
        "in a container the only named process is this one",
        [
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 298.00 MiB. GPU 0 "
                "has a "
                "total capacity of 79.15 GiB of which 12.25 MiB is free. Process 3213415 has "
                "79.10 GiB "
                "memory in use. Of the allocated memory 76.50 GiB is allocated by PyTorch, and "
                "210.00 MiB "
                "is reserved by PyTorch but unallocated."
            ),
        ],
        "cuda-oom",
    ),
    (
        "another process",
        [
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 2 "
                "has a "
                "total capacity of 31.36 GiB of which 471.69 MiB is free. Process 19239 has 14.26 "
                "GiB "
                "memory in use. Including non-PyTorch memory, this process has 16.63 GiB memory "
                "in use. "
                "Of the allocated memory 15.03 GiB is allocated by PyTorch, and 1.00 GiB is "
                "reserved by "
                "PyTorch but unallocated."
            ),
        ],
        "gpu-memory-held-by-other",
    ),
    (
        "killed by Slurm while loading",
        [
            "Loading checkpoint shards:  50%|#####     | 4/8 [01:11<01:04, 16.0s/it]",
            (
                "slurmstepd: error: Detected 4 oom_kill events in StepId=99.0. Some of the step "
                "tasks "
                "have been OOM Killed."
            ),
            "srun: error: n1: tasks 0-3: Out Of Memory",
        ],
        "model-load-memory",
    ),
    (
        "killed while training",
        [
            "step 10 loss 2.1",
            (
                "slurmstepd: error: Detected 1 oom_kill event in StepId=99.0. Some of the step "
                "tasks have "
                "been OOM Killed."
            ),
        ],
        "host-oom-killed",
    ),
    (
        "out of memory, survived",
        [
            "step 1 loss 2.0",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB",
            *(f"step {step} loss 1.9" for step in range(2, 8)),
            "KeyError: 'labels'",
        ],
        "user-exception",
    ),
]


@pytest.mark.parametrize(
    ("lines", "first"),
    [(lines, first) for _, lines, first in FRAGMENTS],
    ids=[name for name, _, _ in FRAGMENTS],
)
def test_a_fragment_comes_to_its_cause(
    lines: list[str], first: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("logs") / "out.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    report = explain([str(path)])

    assert next((cause.id for cause in report.causes), "") == first, [
        (cause.id, cause.points) for cause in report.causes
    ]
