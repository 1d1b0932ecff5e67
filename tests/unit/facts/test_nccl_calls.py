"""Calls that NCCL prints as it launches them: the ranks part where two name different ones."""

from __future__ import annotations

from pathlib import Path

from tests.unit.facts.test_log_facts import extract, facts_of
from tests.unit.waits.test_logged import explained
from trainprobe.facts import CollectiveCall, read


def launched(
    rank: int, op: str, number: str, count: int = 512, comm: str = "", size: int = 4
) -> str:
    address = comm or f"0x55be{rank}f"
    return (
        f"node7:{4000 + rank}:{4100 + rank} [{rank}] NCCL INFO {op}: opCount {number} sendbuff 0x7f5d"
        f" recvbuff 0x7f5e count {count} datatype 7 op 0 root 0 comm {address} [nranks={size}] stream"
        " 0x55bf"
    )


def test_each_line_is_a_call_of_its_rank() -> None:
    (call,) = facts_of(launched(0, "ReduceScatter", "1f"), rank=2).of(CollectiveCall)
    assert (call.rank, call.op, call.number) == (2, "reduce_scatter", 31)
    assert (call.numel_in, call.pending, call.seen_at) == (512, False, "a.log:1")


def test_calls_of_a_communicator_that_cannot_be_told_are_left_out() -> None:
    several = [launched(0, "AllReduce", "2"), launched(0, "AllReduce", "7", comm="0x1")]
    many = [
        extract(launched(rank, "AllReduce", "2", size=2), file=rank, rank=rank) for rank in range(3)
    ]
    assert not facts_of(*several, rank=0).of(CollectiveCall)
    assert not read(many).of(CollectiveCall)
    assert len(read(many[:2]).of(CollectiveCall)) == 2


def test_ranks_that_launch_different_calls_at_one_number_part(tmp_path: Path) -> None:
    alike = [launched(rank, "AllReduce", "28b") for rank in (0, 2)]
    apart = [launched(0, "AllReduce", "28c"), launched(2, "AllGather", "28c", 15360)]
    report = explained({"job.log": "\n".join(alike + apart)}, tmp_path)
    assert report.verdict == "hung"
    assert "#652: rank 0 called all_reduce, rank 2 called all_gather" in report.says
    assert report.suspects[0].ranks == (0, 2)


def test_a_rank_that_printed_fewer_calls_is_not_missing(tmp_path: Path) -> None:
    lines = [launched(0, "AllReduce", "1"), launched(1, "AllReduce", "1")]
    report = explained({"job.log": "\n".join([*lines, launched(0, "AllReduce", "2")])}, tmp_path)
    assert report.verdict == "undetermined"
