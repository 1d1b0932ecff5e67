# /// trainprobe
# rung: 88
# question: Does the model give the same results for all sizes, masks, types and ranks, and
#   after a save?
# scope: host
# needs: [torch, model]
# timeout_s: 240
# climbs: []
# after: [model_load]
# means: The model runs, but with some batch, mask, precision, configuration or save it gives a
#   wrong result.
# ///
"""Seven suites on the user's model, each in a child of its own, and one rank against N.

Environment: TRAINPROBE_MODEL and TRAINPROBE_SAMPLE (pkg.module:factory, file.py:factory; the model
also as a folder with config.json), TRAINPROBE_DEVICE, TRAINPROBE_BENCH_STEPS, TRAINPROBE_FUZZ,
TRAINPROBE_SEED. Flags: --model, --sample, --device, --bench-steps, --fuzz, --seed, --suites A,B,
--ranks, --timeout-s. The sample is a batch, or makes one; one that takes two arguments is asked for
(rows, length).
Measures: <property>.<what was compared> with its threshold, and what and where (the module,
parameter, buffer, attribute, option or size).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _model_stress import report
from _model_stress.request import StressRequest, read_request
from _model_stress.runner import SuiteRunner
from _model_stress.suite_children import as_child, in_a_child

PROGRAM = os.path.realpath(__file__)


def alone(request: StressRequest) -> None:
    """Be a fresh child: import, and do the one suite."""

    def work(findings: Any) -> Any:
        stress = SuiteRunner(request, os.path.dirname(request.alone), findings, PROGRAM)
        stress.load()
        with open(f"{request.alone}.known", encoding="utf-8") as file:
            stress.know(json.load(file))
        return stress.call(os.path.basename(request.alone), findings)

    as_child(work, request.alone, request.timeout_s)


def main() -> None:
    request = read_request()
    if request.alone:
        alone(request)
    with _emit.scratch_folder("stress") as folder:
        outcome = in_a_child(
            lambda findings: SuiteRunner(request, folder, findings, PROGRAM).whole(),
            os.path.join(folder, "whole"),
            max(5.0, request.timeout_s - 3),
            visible=True,
        )
        if outcome.how != "done":
            report.broken(outcome)
    raise SystemExit(outcome.answer)


if __name__ == "__main__":
    main()
