"""The patterns of log lines: data that is well-formed, finds what it names and stays quick."""

from __future__ import annotations

import re
import time
from importlib import resources

import pytest

from trainprobe.signatures import all_signatures, find

# (a line as the program prints it, what it shows, what is captured)
LINES = [
    (
        "RuntimeError: Too many open files. Communication with the workers is no longer possible.",
        "fd-limit",
        {},
    ),
    ("RuntimeError: received 0 items of ancdata", "fd-limit", {"items": "0"}),
    ("OSError: [Errno 24] Too many open files: '/dev/shm/x'", "fd-limit", {}),
    (
        (
            "RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode:"
            " Too many open files (24)"
        ),
        "fd-limit",
        {"mode": "read-write"},
    ),
    (
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by"
            " insufficient shared memory (shm)."
        ),
        "shm-bus-error",
        {},
    ),
    (
        (
            "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is"
            " possible that"
        ),
        "shm-bus-error",
        {"pid": "4242"},
    ),
    (
        "RuntimeError: DataLoader worker (pid 42) is killed by signal: Segmentation fault. ",
        "worker-killed",
        {"pid": "42", "signal": "Segmentation fault"},
    ),
    (
        "RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly",
        "worker-killed",
        {"pids": "12, 13"},
    ),
    (
        (
            "RuntimeError: stack expects each tensor to be equal size, but got [3, 4] at entry 0"
            " and [3, 5] at entry 1"
        ),
        "stack-size-mismatch",
        {"other": "[3, 5]"},
    ),
    (
        "AttributeError: Can't pickle local object 'main.<locals>.f'",
        "unpicklable",
        {"object": "main.<locals>.f"},
    ),
    (
        "TypeError: cannot pickle '_io.TextIOWrapper' object",
        "unpicklable",
        {"object": "_io.TextIOWrapper"},
    ),
    (
        (
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with"
            " multiprocessing"
        ),
        "fork-cuda",
        {},
    ),
    (
        (
            "huggingface/tokenizers: The current process just got forked, after parallelism has"
            " already been used. Disabling"
        ),
        "tokenizers-fork",
        {},
    ),
    ("        current process has finished its bootstrapping phase.", "", {}),
    (
        (
            "An attempt has been made to start a new process before the current process has"
            " finished its bootstrapping phase."
        ),
        "main-guard",
        {},
    ),
    ("RuntimeError: can't start new thread", "thread-create-failed", {}),
    (
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a"
            " total capacity of 79 GiB"
        ),
        "cuda-oom",
        {"asked": "2.00 GiB"},
    ),
    ("  what():  std::bad_alloc", "bad-alloc", {}),
    (
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't"
            " allocate memory: you tried to allocate 400 bytes."
        ),
        "bad-alloc",
        {"bytes": "400"},
    ),
    ("MemoryError", "bad-alloc", {}),
    ("Out of memory: Killed process 77 (python)", "oom-killer", {"pid": "77"}),
    (
        (
            "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer"
            " [127.0.0.1]:35224."
        ),
        "connection-closed",
        {"peer": "127.0.0.1"},
    ),
    (
        (
            "op.preamble.length <= op.nbytes. 12 vs 8. Received data size doesn't match expected"
            " size. Is there"
        ),
        "data-size-mismatch",
        {"received": "12", "expected": "8"},
    ),
    (
        (
            "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81,"
            " OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029"
            " milliseconds"
        ),
        "collective-timeout",
        {"seq": "81"},
    ),
    (
        (
            "RuntimeError: Expected to have finished reduction in the prior iteration before"
            " starting a new one."
        ),
        "ddp-unused-parameters",
        {},
    ),
    (
        "RuntimeError: Expected to mark a variable ready only once. This error",
        "ddp-ready-twice",
        {},
    ),
    (
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 3b000",
        "duplicate-gpu",
        {"rank": "1", "other": "0"},
    ),
    (
        (
            "The server socket has failed to listen on any local network address. port: 29500,"
            " useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
        ),
        "port-in-use",
        {"port": "29500"},
    ),
    (
        "Timed out after 61 seconds waiting for clients. 3/4 clients joined.",
        "world-incomplete",
        {"joined": "3", "expected": "4"},
    ),
    (
        (
            "E1121 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9)"
            " local_rank: 1 (pid: 8841) of binary: /bin/python"
        ),
        "torchrun-failed",
        {"exitcode": "-9", "pid": "8841"},
    ),
    (
        "W1121 api.py:1028] Sending process 8840 closing signal SIGTERM",
        "launcher-stops",
        {"pid": "8840", "signal": "SIGTERM"},
    ),
    (
        "train.py: error: unrecognized arguments: --local-rank=0",
        "launcher-args",
        {"arguments": "--local-rank=0"},
    ),
    ("KeyError: 'LOCAL_RANK'", "launcher-args", {"name": "LOCAL_RANK"}),
    ("RuntimeError: CUDA error: invalid device ordinal", "invalid-device", {}),
    ("AssertionError: Torch not compiled with CUDA enabled", "cpu-only-torch", {}),
    (
        "ModuleNotFoundError: No module named 'flash_attn'",
        "module-not-found",
        {"module": "flash_attn"},
    ),
    (
        "ImportError: /env/x.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorE",
        "abi-mismatch",
        {"symbol": "_ZN3c105ErrorE"},
    ),
    ("OSError: [Errno 28] No space left on device", "no-space", {}),
    (
        (
            "RuntimeError: [enforce fail at inline_container.cc:858] . PytorchStreamWriter failed"
            " writing file data/3: file write failed"
        ),
        "no-space",
        {},
    ),
    (
        (
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central"
            " directory"
        ),
        "checkpoint-corrupt",
        {},
    ),
    ("ValueError: everything is fine", "", {}),
    ("KeyError: 'label'", "", {}),
]


@pytest.mark.parametrize(("line", "shows", "captured"), LINES)
def test_known_lines(line: str, shows: str, captured: dict[str, str]) -> None:
    hits = find(f"before\n{line}\nafter\n")
    if not shows:
        assert not hits
        return
    hit = next(
        (
            one
            for one in hits
            if one.signature.shows == shows and captured.items() <= one.captured.items()
        ),
        None,
    )
    assert hit is not None, [(one.signature.id, one.captured) for one in hits]
    assert hit.line == line.strip()


def test_signatures_are_well_formed() -> None:
    signatures = all_signatures()
    ids = [signature.id for signature in signatures]
    assert len(ids) == len(set(ids)) > 150
    for signature in signatures:
        assert signature.has
        assert min(len(text) for text in signature.has) >= 4, signature.id
        assert signature.shows, signature.id
        assert signature.source, signature.id
        assert signature.stream in ("any", "stdout", "stderr")
        assert isinstance(signature.regex, re.Pattern)
        assert not re.search(
            r"[*+]\)[*+{]|[^\\][*+]\+", signature.regex.pattern.replace("c\\+\\+", "")
        ), f"{signature.id} nests quantifiers"


def test_the_files_travel_with_the_package() -> None:
    assert (
        len(
            [
                entry
                for entry in resources.files("trainprobe.signatures").iterdir()
                if entry.name.endswith(".yaml")
            ]
        )
        >= 8
    )


def test_a_flood_of_the_same_line_is_counted() -> None:
    (hit,) = [one for one in find("Broken pipe\n" * 50) if one.signature.id == "broken-pipe"]
    assert hit.count == 50
    stops = [
        one
        for one in find(
            "".join(f"Sending process {pid} closing signal SIGTERM\n" for pid in range(500))
        )
        if one.signature.id == "torchrun-stops"
    ]
    assert len(stops) == 64


def cost(text: str) -> float:
    """How many times longer the search takes than looking for one absent letter once per
    literal: a quadratic one takes thousands of times.
    """
    began = time.process_time()
    for literal in [literal for signature in all_signatures() for literal in signature.has]:
        assert "\u2603" + literal not in text
    floor = time.process_time() - began
    began = time.process_time()
    find(text)
    return (time.process_time() - began) / max(floor, 0.02)


@pytest.mark.parametrize("separator", ["", " ", "\n", "a", "\\", "(", "0", "<", "["])
def test_a_heap_of_bait_is_searched_in_time(separator: str) -> None:
    """All literals, one after the other: each wakes its pattern, none matches, on one endless
    line or on many.
    """
    bait = separator.join(text for signature in all_signatures() for text in signature.has)
    text = (bait + separator) * (250_000 // len(bait) + 1)
    assert cost(text) < 30


@pytest.mark.parametrize(
    "bait",
    [
        "Error while creating shared memory segment ",
        "undefined symbol",
        "pthread_create",
        "EADDRINUSE",
        "ibv_reg_mr",
        "Assertion `",
        "vendor err",
        "Max retries exceeded with url",
    ],
)
def test_one_long_line_of_one_literal(bait: str) -> None:
    for filler in ("x", "0", " ", "/", ".", "host='"):
        assert cost((filler * 300 + bait) * (250_000 // (300 * len(filler) + len(bait)))) < 30
