"""Logs of start-up and communication, from the file to the cause: several versions and
frameworks, most of them fragments without a rank.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.network_logs import LOGS
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain


@pytest.mark.parametrize(
    ("cause", "name", "text"),
    LOGS,
    ids=[f"{cause}-{name}".replace(" ", "-") for cause, name, _ in LOGS],
)
def test_the_cause_stands_first(cause: str, name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(f"{text}\n", encoding="utf-8")

    report = explain(str(path))

    assert report.causes, (name, report.says)
    assert report.causes[0].id == cause, [(one.id, one.points) for one in report.causes]
    assert cause == "unknown" or report.causes[0].named, [
        (one.id, one.points) for one in report.causes
    ]
    assert all(fix.steps for fix in report.causes[0].fixes)


@pytest.mark.parametrize("cause", sorted({cause for cause, _, _ in LOGS} - {"unknown"}))
def test_ranks_before_the_lines_change_nothing(cause: str, tmp_path: Path) -> None:
    text = next(text for one, _, text in LOGS if one == cause)
    path = tmp_path / "job.log"
    path.write_text("".join(f"[rank3]: {line}\n" for line in text.splitlines()), encoding="utf-8")

    report = explain(str(path))

    assert report.causes[0].id == cause, [(one.id, one.points) for one in report.causes]


def test_a_log_of_nccl_that_simply_stops_names_nothing(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "node-a:50:60 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\nnode-a:50:60 [0] NCCL INFO"
        " NET/IB : No device found.\nnode-a:50:60 [0] NCCL INFO Using network Socket\n",
        encoding="utf-8",
    )

    report = explain(str(path))

    assert report.verdict == "undetermined"
    assert not any(cause.named for cause in report.causes)


def test_a_connection_that_the_kernel_gave_up_is_the_networks_fault(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "node-a:77:91 [0] misc/socket.cc:503 NCCL WARN Net : Call to recv from 10.2.0.7<50932>"
        " failed : Connection timed out\nnode-a:77:91 [0] NCCL INFO misc/socket.cc:520 -> 2\n",
        encoding="utf-8",
    )

    report = explain(str(path))

    assert (report.causes[0].id, report.causes[0].named) == ("network-fault", True)
    assert "10.2.0.7" in report.causes[0].summary


def test_flushed_work_requests_are_what_an_ended_peer_leaves_behind(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "RuntimeError: NCCL error: remote process exited or there was a network error\nLast"
        " error:\nNET/IB : Got completion from peer 10.2.0.7<47534> with error 5, opcode 48, len 9,"
        " vendor err 244\n",
        encoding="utf-8",
    )

    report = explain(str(path))

    assert not any(cause.named for cause in report.causes)


def test_a_known_line_of_trouble_shows_its_component_where_it_names_no_cause(
    tmp_path: Path,
) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "node-a:77:91 [1] misc/argcheck.cc:39 NCCL WARN Broadcast : invalid root 0 (root should be"
        " in the 0..-1 range)\nnode-a:77:91 [1] NCCL INFO enqueue.cc:1450 -> 4\n",
        encoding="utf-8",
    )

    report = explain(str(path))

    assert report.causes[0].title == "The trouble shows in NCCL"


def test_a_link_that_went_down_in_the_kernel_log_speaks_of_the_network(tmp_path: Path) -> None:
    kernel, job = tmp_path / "kern.log", tmp_path / "job.log"
    kernel.write_text(
        "Apr 12 08:44:01 node-c kernel: mlx5_core 0000:5e:00.0 ib3: Link down\n" * 2,
        encoding="utf-8",
    )
    lost = (
        "NCCL error in: x.cpp:1970, remote process exited or there was a network error, NCCL"
        " version 2.20.5\nLast error:\nsocketProgress: Connection closed by remote peer"
        " node-c<41822>"
    )
    steps = "".join(f"[rank0]: step {step}/1000 loss 2.0\n" for step in range(100, 120))
    job.write_text(
        steps + "".join(f"[rank0]: {line}\n" for line in (_traceback() + lost).splitlines()),
        encoding="utf-8",
    )

    report = explain([str(kernel), str(job)])

    assert report.causes[0].id == "network-fault", [(one.id, one.points) for one in report.causes]
    assert "node-c" in report.causes[0].summary


def _traceback() -> str:
    return (
        'Traceback (most recent call last):\n  File "/job/train.py", line 20, in main\n   '
        " loss.backward()\ntorch.distributed.DistBackendError: "
    )


def test_a_missing_node_is_no_wrong_world_size(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 2, for"
        " key: k:1 (world_size=32, worker_count=24, timeout=0:30:00)\n",
        encoding="utf-8",
    )

    unknown = explain(str(path))
    wrong = explain(ExplainRequest(paths=(str(path),), nodes=3, gpus=8, argv=()))
    missing = explain(ExplainRequest(paths=(str(path),), nodes=4, gpus=8, argv=()))

    assert unknown.causes[0].id == "rendezvous-incomplete"
    assert wrong.causes[0].id == "world-size-mismatch"
    assert missing.causes[0].id == "rendezvous-incomplete"


def test_sizes_that_each_rank_printed_are_held_against_the_call_that_never_ended(
    tmp_path: Path,
) -> None:
    path = tmp_path / "job.log"
    sizes = ("4, 906, 32020", "4, 966, 32020", "4, 902, 32020", "4, 902, 32020")
    lines = [f"logits shape: torch.Size([{size}])" for size in sizes]
    watchdog = (
        "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=4, OpType=ALLGATHER, NumelIn=30931320, NumelOut=123725280,"
        " Timeout(ms)=1800000) ran for 1800304 milliseconds before timing out."
    )
    path.write_text("\n".join([*lines, watchdog]), encoding="utf-8")

    report = explain(str(path))

    assert (report.causes[0].id, report.causes[0].named) == ("collective-shape-mismatch", True)
