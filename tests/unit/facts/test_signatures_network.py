"""The patterns of network and launch lines: each finds its own example, keeps off its
look-alikes, and several versions' wordings mean one event.
"""

from __future__ import annotations

import pytest

from trainprobe.shipped import shipped
from trainprobe.signatures import Signature, all_signatures, match_line

FILES = ("network.yaml", "launch.yaml")
ROWS = [row for name in FILES for row in shipped("trainprobe.signatures", name)]
BY_ID: dict[str, Signature] = {signature.id: signature for signature in all_signatures()}

# (what is shown, what is captured, lines that show it)
SHOWN: list[tuple[str, dict[str, str], str]] = [
    (
        "ib-error",
        {"status": "12", "vendor": "129"},
        "NET/IB : Got completion with error 12, opcode 1, len 32, vendor err 129",
    ),
    (
        "ib-error",
        {"status": "12", "vendor": "129"},
        (
            "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4000> with status=12 opcode=0"
            " len=0 vendor err 129 (Recv)"
        ),
    ),
    (
        "ib-error",
        {"status": "12", "vendor": "129"},
        (
            "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4000> with"
            " status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 hca"
            " mlx5_1"
        ),
    ),
    ("ib-setup-failed", {}, "NCCL WARN Call to ibv_modify_qp failed with error No such device"),
    ("memlock", {}, "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"),
    (
        "memlock",
        {"what": "qp"},
        "NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory errno 12",
    ),
    (
        "memlock",
        {"what": "cq"},
        "UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory",
    ),
    (
        "peer-refused",
        {"peer": "10.0.0.2", "port": "40001"},
        "NCCL WARN Net : Connect to 10.0.0.2<40001> failed : Connection refused",
    ),
    (
        "peer-refused",
        {"peer": "10.0.0.2"},
        (
            "NCCL WARN socketPollConnect: Connect to 10.0.0.2<40001> returned 111(Connection"
            " refused) errno 115(Operation now in progress)"
        ),
    ),
    ("peer-refused", {}, "NCCL WARN Call to connect failed : Connection refused"),
    (
        "peer-unanswered",
        {"peer": "10.0.0.2"},
        "socketStartConnect: Connect to 10.0.0.2<40001> failed : Connection timed out",
    ),
    (
        "peer-unanswered",
        {},
        (
            "NCCL WARN ncclOsSocketPollConnect: connect to 10.0.0.2<40001> returned Connection"
            " timed out, exceeded error retry count after 35 attempts"
        ),
    ),
    (
        "interface-missing",
        {"interface": "eth7"},
        (
            "RuntimeError: [enforce fail at /gloo/transport/tcp/device.cc:83] ifa != nullptr."
            " Unable to find address for: eth7"
        ),
    ),
    ("interface-missing", {}, "NCCL WARN NET/Socket : no interface found"),
    ("interface-missing", {}, "NCCL WARN Bootstrap: no socket interface found"),
    ("wrong-interface", {"interface": "lo"}, "NCCL INFO Bootstrap: Using lo:127.0.0.1<0>"),
    (
        "wrong-interface",
        {"interface": "docker0"},
        "NCCL INFO NET : Using interface docker0:172.17.0.1<0>",
    ),
    (
        "name-not-resolved",
        {"host": "node-b", "code": "-3"},
        (
            "The IPv4 network addresses of (node-b, 6000) cannot be retrieved (gai error: -3 -"
            " Temporary failure in name resolution)."
        ),
    ),
    (
        "name-not-resolved",
        {"code": "-2"},
        "[enforce fail at ../gloo/transport/tcp/device.cc:94] rv == 0. -2 vs 0",
    ),
    (
        "name-not-resolved",
        {"host": "node-b"},
        "The client socket has failed to connect to [node-b]:6000 (errno: 22 - Invalid argument).",
    ),
    (
        "no-route",
        {},
        "The client socket has failed to connect to [node-b]:6000 (errno: 113 - No route to host).",
    ),
    (
        "store-refused",
        {"host": "node-b", "port": "6000"},
        (
            "The client socket has failed to connect to [node-b]:6000 (errno: 111 - Connection"
            " refused)."
        ),
    ),
    (
        "store-unanswered",
        {"host": "node-b"},
        (
            "The client socket has failed to connect to [node-b]:6000 (errno: 110 - Connection"
            " timed out)."
        ),
    ),
    (
        "rendezvous-timeout",
        {"host": "10.0.0.2", "port": "6000"},
        "The client socket has timed out after 60s while trying to connect to 10.0.0.2:6000",
    ),
    (
        "world-incomplete",
        {"world_size": "16", "joined": "18"},
        (
            "Timed out initializing process group in store based barrier on rank: 3, for key: k:1"
            " (world_size=16, worker_count=18, timeout=0:30:00)"
        ),
    ),
    (
        "world-incomplete",
        {"joined": "2"},
        (
            "Timed out initializing process group in store based barrier on rank 3, for key: k:1"
            " (world_size=4, num_workers_joined=2, timeout=0:30:00 error=wait timeout)"
        ),
    ),
    (
        "nccl-shm",
        {"error": "No space left on device"},
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
    ),
    (
        "nccl-shm",
        {"name": "nccl-shm-recv-25-0-1-3"},
        (
            "NCCL WARN Error while creating shared memory segment nccl-shm-recv-25-0-1-3 (size"
            " 9637888)"
        ),
    ),
    ("nccl-version", {"version": "2.18.5", "cuda": "12.2"}, "NCCL version 2.18.5+cuda12.2"),
    (
        "nccl-version-mismatch",
        {"symbol": "ncclCommSplit"},
        "ImportError: libtorch_cuda.so: undefined symbol: ncclCommSplit",
    ),
    (
        "nccl-setting",
        {"name": "NCCL_SOCKET_IFNAME", "value": "eth9"},
        "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth9",
    ),
    (
        "nccl-setting",
        {"name": "NCCL_P2P_LEVEL", "value": "LOC"},
        "NCCL INFO NCCL_P2P_LEVEL set by environment to LOC",
    ),
    (
        "launcher-args",
        {"name": "RANK"},
        (
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment"
            " variable RANK expected, but not set"
        ),
    ),
    (
        "launcher-args",
        {"arguments": "--local_rank=1"},
        "usage: main.py [-h] main.py: error: unrecognized arguments: --local_rank=1",
    ),
    ("devices-missing", {"seen": "[0]"}, " But your machine only has: [0]"),
    (
        "device-crossed",
        {"first": "cuda:3", "second": "cuda:0"},
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:3"
            " and cuda:0!"
        ),
    ),
    (
        "gpu-process",
        {"gpu": "0", "pid": "12345"},
        "|    0   N/A  N/A     12345      C   python                           3201MiB |",
    ),
    ("port-in-use", {"port": "29400"}, "RuntimeError: on node-a, port: 29400 already in use"),
]
# Lines of healthy runs, and of other troubles.
SILENT = [
    "node-a:7:7 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
    "node-a:7:7 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
    "node-a:7:7 [0] NCCL INFO NET/IB : No device found.",
    "node-a:7:7 [0] NCCL INFO Using network Socket",
    "node-a:7:7 [0] NCCL INFO Connected all rings",
    "ValueError: shapes (3,4) and (5,6) not aligned",
    "connecting to 10.0.0.2:9092 for metrics",
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_pattern_finds_its_example_and_nothing_alike(row: dict[str, object]) -> None:
    signature = BY_ID[str(row["id"])]

    assert signature.example, "an example shows what the pattern is for"
    assert signature.source
    assert signature.id in {hit.signature.id for hit in match_line(signature.example)}
    for line in signature.unlike:
        assert signature.id not in {hit.signature.id for hit in match_line(line)}, line


@pytest.mark.parametrize(("shows", "captured", "line"), SHOWN)
def test_versions_say_it_in_their_own_words(
    shows: str, captured: dict[str, str], line: str
) -> None:
    hits = match_line(line)

    assert any(
        hit.signature.shows == shows and captured.items() <= hit.captured.items() for hit in hits
    ), [(hit.signature.id, hit.captured) for hit in hits]


@pytest.mark.parametrize("line", SILENT)
def test_healthy_lines_show_nothing(line: str) -> None:
    assert [
        hit.signature.id
        for hit in match_line(line)
        if hit.signature.id in {row["id"] for row in ROWS}
    ] == []


def test_the_literals_are_long_enough_to_be_rare() -> None:
    assert [text for row in ROWS for text in BY_ID[row["id"]].has if len(text) < 6] == []
