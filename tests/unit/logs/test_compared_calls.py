"""What torch says of calls that it compared (TORCH_DISTRIBUTED_DEBUG=DETAIL), whole or cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.pipelines import explain

OF_A_TENSOR = (
    "TensorDtypes={0}, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda,"
    " layout=Strided (default), requires_grad=false (default), pinned_memory=false (default),"
    " memory_format=(nullopt)))"
)
FOUND = (
    "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running"
    " collective: CollectiveFingerPrint({0}, but Rank 3 is running collective:"
    " CollectiveFingerPrint({1}\n"
)
FLAG = f"SequenceNumber=57, OpType=ALLREDUCE, TensorShape=[1], {OF_A_TENSOR.format('Int')}"
BUCKET = f"OpType=ALLREDUCE, TensorShape=[7102], {OF_A_TENSOR.format('Float')}"


@pytest.mark.parametrize(
    ("mine", "theirs", "cause", "says"),
    [
        # torch shows a length of 3 as REDUCE: operation, number, and that there is no tensor
        (FLAG, "SequenceNumber=0OpType=REDUCE).", "rank-conditional-collective", "no tensor"),
        # a length of 8, as of one tensor of two dimensions
        (FLAG, "SequenceNumber=0OpType=SCATTER).", "rank-conditional-collective", "not this"),
        (BUCKET, "OpType=ALLRED", "collective-shape-mismatch", "cut off"),
        ("SequenceNumber=4OpType=BARRIER)", "SequenceNumber=3OpType=BARRIER).", "unknown", ""),
        (
            "SequenceNumber=4OpType=BARRIER)",
            "SequenceNumber=3OpType=ALLTOALL).",
            "rank-conditional-collective",
            "BARRIER against ALLTOALL",
        ),
    ],
)
def test_a_finger_print_is_read_as_far_as_torch_shows_it(
    mine: str, theirs: str, cause: str, says: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.log"
    log.write_text(FOUND.format(mine, theirs), encoding="utf-8")

    report = explain([str(log)])

    first = report.causes[0]
    assert (report.verdict, first.id) == ("crashed", cause)
    assert says in f"{first.summary} {' '.join(row.says for row in first.because)}"


def test_numbers_of_two_ranks_make_a_log_that_of_several(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "[RANK 1] step failed: CUDA error: an illegal memory access was encountered\n"
        "[RANK 0] stops\n" + "[rank7]: Traceback (most recent call last):\n"
        '[rank7]:   File "train.py", line 9, in <module>\n[rank7]:     main()\n'
        "[rank7]: KeyError: 'loss'\n",
        encoding="utf-8",
    )

    assert explain([str(log)]).causes[0].ranks == (1,)
