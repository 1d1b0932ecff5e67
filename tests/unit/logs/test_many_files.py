"""Where a thousand files share the room, what failed stays."""

from __future__ import annotations

from trainprobe.logs.scanning import FileScan

FRAMES = [f'  File "/w/part{number}.py", line {number}, in step{number}' for number in range(1, 41)]
RAISED = ["Traceback (most recent call last):", *FRAMES, "KeyError: 'missing'"]


def _rows(lines: list[str], cap: int) -> list[str]:
    scan = FileScan(None, cap=cap, whole=cap)
    scan.feed(("\n".join(lines) + "\n").encode())
    return [line.text for selection in scan.finish() for line in selection.rows()]


def test_a_whole_traceback_and_the_end_of_its_file_survive_a_small_share() -> None:
    steps = [f"step {number} loss 0.5" for number in range(3000)]
    rows = _rows([*steps, *RAISED, *steps], 24)
    assert [row for row in rows if row in RAISED] == RAISED
    assert rows[-1] == "step 2999 loss 0.5"
    assert len(rows) <= 120 + 24


def test_a_large_share_is_kept_to() -> None:
    lines = [line for number in range(400) for line in (f"step {number}", *RAISED)]
    assert len(_rows(lines, 500)) == 500


def test_the_last_words_of_a_silent_rank_cost_no_second_reading_of_the_file_where_the_share_is_small() -> (
    None
):
    lines = [
        "[rank1]: step 0 loss 1.0",
        *(f"[rank0]: step {number} loss 0.5" for number in range(3000)),
    ]
    scan = FileScan(None, cap=24, whole=24)
    looked = 0
    untimed = scan.reader.untimed

    def counted(raw: bytes, number: int) -> object:
        nonlocal looked
        looked += 1
        return untimed(raw, number)

    scan.reader.untimed = counted  # type: ignore[method-assign, assignment]
    scan.feed(("\n".join(lines) + "\n").encode())
    scan.finish()
    assert 8 <= looked <= 200
