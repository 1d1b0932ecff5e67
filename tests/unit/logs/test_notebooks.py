"""A notebook is read as what its cells printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainprobe.errors import UsageError
from trainprobe.logs.kinds import kind_of
from trainprobe.logs.notebooks import printed_output
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

FAILED = [
    "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
    "\x1b[0;31mKeyError\x1b[0m                                  Traceback (most recent call last)",
    (
        "File \x1b[0;32m/srv/prep.py:8\x1b[0m, in \x1b[0;36mload\x1b[0;34m(rows)\x1b[0m\n"
        "\x1b[0;32m----> 8\x1b[0m     return rows['split']\n"
    ),
    "\x1b[0;31mKeyError\x1b[0m: 'split'",
]


def notebook(*outputs: dict[str, Any]) -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["RuntimeError: as I read somewhere"]},
        {"cell_type": "code", "metadata": {}, "source": ["train()"], "outputs": list(outputs)},
    ]
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


STREAM = {"output_type": "stream", "name": "stdout", "text": ["step 1\n", "step 2\n"]}
ERROR = {"output_type": "error", "ename": "KeyError", "evalue": "'split'", "traceback": FAILED}


def test_only_what_was_printed_is_read() -> None:
    shown = {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}}
    printed = printed_output(notebook(STREAM, shown, {**ERROR, "traceback": []}).encode())
    assert printed == b"step 1\nstep 2\n3\nKeyError: 'split'"


def test_its_traceback_is_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(notebook(STREAM, ERROR))
    report = explain(ExplainRequest(paths=(str(path),), argv=("trainprobe", "explain")))
    assert report.verdict == "crashed"
    assert report.causes[0].id == "user-exception"
    assert "prep.py:8" in report.causes[0].summary


def test_half_a_notebook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    whole = notebook(STREAM, ERROR)
    path.write_text(whole[: len(whole) // 2])
    assert kind_of(whole.encode()) == kind_of(path.read_bytes()) == "notebook"
    with pytest.raises(UsageError, match="a notebook that is not whole"):
        explain(ExplainRequest(paths=(str(path),), argv=("trainprobe", "explain")))


@pytest.mark.parametrize(
    "cells", ["3", "[3]", '[{"outputs": 3}]', '[{"outputs": [3]}]', "[" * 5000]
)
def test_nothing_hostile_gets_through(cells: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own says nothing that would be ours
        printed_output(f'{{"cells": {cells}, "nbformat": 4}}'.encode())
