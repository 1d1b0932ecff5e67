"""Another rank's end against one's own."""

from __future__ import annotations

import pytest

from trainprobe.stacks.echoes import echo_of

ECHOES = [
    (
        "RuntimeError",
        (
            "[/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:35224. This is"
            " typically caused by a remote worker crashing."
        ),
    ),
    (
        "RuntimeError",
        "[/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:9880: Connection reset by peer.",
    ),
    (
        "RuntimeError",
        (
            "[/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv"
            " operation to complete"
        ),
    ),
    ("RuntimeError", "Application timeout caused pair closure"),
    (
        "RuntimeError",
        (
            "Rank 0 successfully reached monitoredBarrier, but received errors; Ranks 1 failed to"
            " pass monitoredBarrier in 8000 ms"
        ),
    ),
    (
        "torch.distributed.DistBackendError",
        "NCCL error: remote process exited or there was a network error, NCCL version 2.27.5",
    ),
    (
        "torch.distributed.DistNetworkError",
        (
            "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server"
            " shutdown or crash?"
        ),
    ),
    (
        "torch.distributed.DistStoreError",
        "wait timeout after 300000ms, keys: /default_pg/0//cpu//0/0",
    ),
    ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", ""),
    (
        "Exception",
        "\n\n-- Process 3 terminated with the following error:\nTraceback (most recent call last):",
    ),
    ("RuntimeError", "Connection timed out"),
]
ORIGINS = [
    ("KeyError", "'label'"),
    (
        "RuntimeError",
        (
            "op.preamble.length <= op.nbytes. 12 vs 8. Received data size doesn't match expected"
            " size. Is there a distributed collective mismatch in your code?"
        ),
    ),
    (
        "RuntimeError",
        (
            "Detected mismatch between collectives on ranks. Rank 0 is running collective:"
            " CollectiveFingerPrint(OpType=ALLREDUCE)"
        ),
    ),
    (
        "torch.distributed.DistNetworkError",
        (
            "The server socket has failed to bind to [::]:29500. EADDRINUSE, message: address"
            " already in use"
        ),
    ),
    ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
    ("RuntimeError", "Timed out waiting for the licence server"),
    ("ValueError", "Connection closed by peer"),
    ("Exception", "Process 3 terminated with the following error"),
    ("ConnectionRefusedError", "Connection refused"),
    ("RuntimeError", "Connection timed out while the licence was read"),
    (
        "subprocess.CalledProcessError",
        "Command '['ffmpeg', '-i', 'a.mp4']' died with <Signals.SIGSEGV: 11>.",
    ),
    ("TimeoutError", ""),
]


@pytest.mark.parametrize(
    "message",
    [
        "[Rank 1] Caught collective operation timeout: WorkNCCL(SeqNum=171, OpType=BROADCAST)",
        "[Rank 1] Work WorkNCCL(SeqNum=9, OpType=ALLREDUCE) timed out in blocking wait.",
        "Rank 3 successfully reached monitoredBarrier, but received errors while waiting",
    ],
)
def test_who_gave_up_waiting_repeats_that_somebody_did_not_come(message: str) -> None:
    assert echo_of("RuntimeError", message).endswith("-timeout")


@pytest.mark.parametrize(("kind", "message"), ECHOES)
def test_echoes(kind: str, message: str) -> None:
    assert echo_of(kind, message)


@pytest.mark.parametrize(("kind", "message"), ORIGINS)
def test_origins(kind: str, message: str) -> None:
    assert echo_of(kind, message) == ""


def test_a_socket_error_counts_as_an_echo_only_inside_torch_distributed() -> None:
    assert echo_of(
        "ConnectionResetError",
        "[Errno 104]",
        ("/env/site-packages/torch/distributed/elastic/rendezvous/api.py",),
    )
    assert not echo_of(
        "ConnectionResetError", "[Errno 104]", ("/env/site-packages/urllib3/connection.py",)
    )


def test_a_child_that_died_is_the_launchers_word_only_inside_a_launcher() -> None:
    message = (
        "Command '['python', '-u', 'fit.py', '--local_rank=1']' died with <Signals.SIGSEGV: 11>."
    )

    assert (
        echo_of(
            "subprocess.CalledProcessError",
            message,
            ("/env/site-packages/torch/distributed/launch.py",),
        )
        == "launcher"
    )
    assert not echo_of(
        "subprocess.CalledProcessError",
        message,
        ("/job/fit.py", "/env/lib/python3.9/subprocess.py"),
    )
