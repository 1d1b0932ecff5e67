"""Rows that differ in digits alone are searched once, and found as if each were searched."""

from __future__ import annotations

from trainprobe.facts.log_rows import Row
from trainprobe.facts.log_signs import hits
from trainprobe.signatures import all_signatures

TEXTS = (
    "step 1 of 9",
    "step 2 of 9",
    "got signal: 1 here",
    "Process 71 got signal: 1",
    "Process 72 got signal: 2",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB",
)


def test_each_row_is_found_with_each_of_its_wordings() -> None:
    rows = [
        Row(number + 1, None, None, "", text, number, "a.log") for number, text in enumerate(TEXTS)
    ]
    expected = [
        (row.text, signature.id)
        for row in rows
        for signature in all_signatures()
        if any(literal in row.text for literal in signature.has)
        and signature.regex.search(row.text)
    ]

    assert [(row.text, signature.id) for row, signature, _ in hits(rows)] == expected
    assert {text for text, _ in expected} >= set(TEXTS[3:])
