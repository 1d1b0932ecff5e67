"""Run suites of the stress test in this process, over several models of one file: SUITE FILE
FUZZ SEED NAME[:SAMPLE]...; what they wrote, as JSON by name.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from typing import Any

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.realpath(__file__)), *[os.pardir] * 2, "probes")
)

import _model_stress  # isort: skip  # noqa: F401 - before _emit takes its folder off the path
import torch

from _model_stress.baseline import first_look
from _model_stress.findings import Findings, NotApplicableError
from _model_stress.request import StressRequest
from _model_stress.tested_model import TestedModel, Traits


def rows_of(suite: str, file: str, fuzz: int, seed: int, name: str) -> list[Any]:
    model, _, sample = name.partition(":")
    given = f"{file}:{sample or 'sample'}" if sample != "-" else ""
    source = f"{file}:{model}" if file != "-" else model
    tested = TestedModel(StressRequest(source, given, "cpu", 1, fuzz, seed, (suite,), 2, 60.0))
    with tempfile.TemporaryDirectory() as folder:
        first = first_look(tested, Findings(os.path.join(folder, "first"), 60))
        tested.kind, tested.traits = first["kind"], Traits(**first["traits"])
        path = os.path.join(folder, "suite")
        module = importlib.import_module(f"_model_stress.suites.{suite}")
        why = ""
        try:
            module.run(tested, Findings(path, 60))
        except NotApplicableError as error:
            why = str(error)
        with (
            open(path, encoding="utf-8") as rows,
            open(os.path.join(folder, "first"), encoding="utf-8") as looked,
        ):
            before = [
                {**row, "row": "first look"}
                for row in map(json.loads, looked)
                if row["row"] == "held"
            ]
            return [
                *before,
                *(json.loads(line) for line in rows),
                *([{"row": "skipped", "says": why}] if why else []),
            ]


def main() -> None:
    suite, file, fuzz, seed, *names = sys.argv[1:]
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(sys.stderr):
        found = {name: rows_of(suite, file, int(fuzz), int(seed), name) for name in names}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
