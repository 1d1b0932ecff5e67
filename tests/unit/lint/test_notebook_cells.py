"""Notebooks cell by cell: one that is no Python costs only itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainprobe.cli import run
from trainprobe.lint.engine import findings_of
from trainprobe.lint.notebooks import cells_as_text
from trainprobe.lint.reading import read_program

FAULT = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()"


def notebook(*cells: str) -> str:
    return json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    )


def test_a_broken_cell_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(notebook("def f(:\n    pass", FAULT))
    program = read_program([str(path)])
    assert [finding.line for finding in findings_of(program)[0]] == [7]
    assert [each.reason for each in program.not_read] == [
        "Its cell 1 is left out, which is no Python: invalid syntax in its line 1."
    ]


def test_a_broken_cell_alone_is_no_clean_bill(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(notebook("def f(:\n    pass", "x = 1"))
    assert run(["lint", str(path), "--quiet"]) == 3


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("%env A=1", "pass  # %env A=1"),
        ("  !ls", "  pass  # !ls"),
        ("x = !ls", "x = None  # x = !ls"),
        ("a, b = %timeit -o f()", "a, b = None  # a, b = %timeit -o f()"),
        ("len?", "pass  # len?"),
        ("x = 5 % 3", "x = 5 % 3"),
        ("y = x != 3", "y = x != 3"),
        ("'why?'", "'why?'"),
    ],
)
def test_lines_of_ipython(line: str, becomes: str) -> None:
    text, broken = cells_as_text(
        notebook(f"if 1:\n  pass\n{line}" if line[0] != " " else f"if 1:\n{line}")
    )
    assert text.split("\n")[-2] == becomes
    assert broken == []


def test_another_language_is_left() -> None:
    text, broken = cells_as_text(notebook("%%bash\nls -l |", "%%time\nx = 1"))
    assert "# ls -l |" in text
    assert "\nx = 1\n" in text
    assert broken == []
