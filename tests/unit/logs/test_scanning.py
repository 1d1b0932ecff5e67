"""What is kept of a file, whatever its length."""

from __future__ import annotations

import time

from trainprobe.logs.literal_search import signature_search
from trainprobe.logs.scanning import COMMON, FileScan
from trainprobe.signatures import literals

TRACE = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 3, in <module>',
    "    main()",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
]


def scan(text: str | bytes, piece: int = 2**20) -> list[tuple[int, int | None, str]]:
    """(number, rank, text) of every row kept, of all attempts."""
    content = text.encode() if isinstance(text, str) else text
    file = FileScan(None)
    for at in range(0, len(content), piece):
        file.feed(content[at : at + piece])
    return [
        (line.number, line.rank, line.text)
        for selection in file.finish()
        for line in selection.rows()
    ]


def long_log(
    lines: int, extra: dict[int, list[str]] | None = None, ranks: int = 4
) -> tuple[str, list[str]]:
    """A log of interleaved ranks; `extra` lines are put in before the line of that number (0
    first).
    """
    rows: list[str] = []
    for number in range(lines):
        rows += (extra or {}).get(number, [])
        rows.append(
            f"[rank{number % ranks}]: 2026-11-21 10:00:{number % 60:02d} step {number // ranks}"
            " loss 0.5"
        )
    return "\n".join(rows) + "\n", rows


def test_a_short_log_is_kept_whole() -> None:
    text, rows = long_log(3000)
    assert [number for number, _, _ in scan(text)] == list(range(1, len(rows) + 1))


def test_a_long_log_keeps_its_ends_and_what_a_signature_knows() -> None:
    text, rows = long_log(200_000, {100_000: [f"[rank2]: {line}" for line in TRACE]})
    kept = scan(text)
    assert len(kept) <= 4000
    numbers = {number for number, _, _ in kept}
    assert {1, 60, len(rows), len(rows) - 400} <= numbers
    found = [(rank, said) for number, rank, said in kept if 100_001 <= number <= 100_004]
    assert found == [(2, line) for line in TRACE]
    assert {100_005, 100_006, 100_007} <= numbers
    for number, _, said in kept:
        assert rows[number - 1].endswith(said)


def test_the_size_of_the_pieces_changes_nothing() -> None:
    text, _ = long_log(
        30_000,
        {number: [f"[rank1]: {line}" for line in TRACE] for number in range(500, 30_000, 4999)},
    )
    whole = scan(text, 2**30)
    middle = [row for row in whole if 500 < row[0] < 29_000 and "step" not in row[2]]
    for piece in (9973, 65_536):
        assert [
            row for row in scan(text, piece) if 500 < row[0] < 29_000 and "step" not in row[2]
        ] == middle


def test_a_literal_on_every_line_neither_crawls_nor_hides_the_others() -> None:
    common = next(text for text in literals() if len(text) > 8)
    rows = [f"{common} number {number}" for number in range(400_000)]
    rows[300_000:300_000] = TRACE
    file = FileScan(None)
    began = time.process_time()
    file.feed("\n".join(rows).encode())
    kept = [line for selection in file.finish() for line in selection.rows()]
    assert time.process_time() - began < 10  # one look at each line would take a minute
    assert [line.text for line in kept if 300_001 <= line.number <= 300_004] == TRACE
    assert kept[-1].text == rows[-1]
    assert file.lines == len(rows)
    assert len(rows) > 10 * COMMON


def test_the_last_progress_of_a_rank_that_fell_silent_is_known() -> None:
    rows = [f"[rank{number % 4}]: step {number // 4} loss 0.5" for number in range(400_000)]
    rows = [
        row for number, row in enumerate(rows) if number < 200_000 or not row.startswith("[rank3]")
    ]
    last = max(number for number, rank, _ in scan("\n".join(rows), 2**20) if rank == 3)
    assert last > 100_000


def test_tracebacks_of_interleaved_ranks_are_whole() -> None:
    deep = [
        TRACE[0],
        *(f'  File "/w/m{depth}.py", line {depth}, in f{depth}' for depth in range(1, 60)),
        TRACE[-1],
    ]
    mixed = [f"[rank{rank}]: {line}" for line in deep for rank in range(4)]
    text, _ = long_log(100_000, {50_000: mixed})
    kept = scan(text)
    for rank in range(4):
        mine = [said for _, whose, said in kept if whose == rank]
        begin = mine.index(TRACE[0])
        assert mine[begin : begin + len(deep)] == deep


def test_lines_of_any_length_and_without_an_end() -> None:
    giant = "x" * 9_000_000 + " CUDA out of memory. Tried to allocate 2.00 GiB " + "y" * 9_000_000
    kept = scan(
        f"begin\n{giant}\nRuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB"
        f" {'z' * 100_000}\nno end"
    )
    assert max(len(said) for _, _, said in kept) <= 2000
    assert kept[0][2] == "begin"
    assert kept[-1][2] == "no end"
    assert any("Tried to allocate 1.00 GiB" in said for _, _, said in kept)
    deep_inside = scan(
        "a\n"
        + "x" * 90_000
        + " CUDA out of memory. Tried to allocate 3.00 GiB "
        + "y" * 9000
        + "\nb\n"
    )
    assert any("Tried to allocate 3.00 GiB" in said for _, _, said in deep_inside)


def test_carriage_returns_colours_and_zeros_are_gone() -> None:
    kept = scan(
        b"\x1b[31mred\x1b[0m\r\n"
        + b"\r".join(b" %d%%|##  | %d/100 [00:01<00:02]" % (part, part) for part in range(100))
        + b"\n\0\0\0after\n"
    )
    said = [text for _, _, text in kept]
    assert said[0] == "red"
    assert "99/100" in said[1]
    assert said[-1] == "after"
    assert len(said) <= 5


def test_attempts_are_apart() -> None:
    one = [f"[rank0]: step {number}" for number in range(10)]
    agent = (
        "I1121 10:00:0{} 1 torch/distributed/elastic/agent/server/api.py:900] [default] worker"
        " group FAILED. {}/3 attempts left; will restart worker group"
    )
    rows = [
        *one,
        agent.format(1, 3),
        "I1121 10:00:02 1 api.py:1] [default] Rendezvous'ing worker group",
        *one,
    ]
    file = FileScan(None)
    file.feed("\n".join(rows).encode())
    assert [(selection.number, selection.begins) for selection in file.finish()] == [
        (0, 1),
        (1, 12),
    ]


def test_the_engine_finds_each_text_where_texts_overlap() -> None:
    texts = signature_search().texts
    content = b" ".join(texts[:50])
    assert {number for _, number in signature_search().hits(content)} >= set(range(50))
    assert {number for _, number in signature_search().without(frozenset({0, 1})).hits(content)} & {
        0,
        1,
    } == set()
