# /// trainprobe
# rung: 88
# question: Does the model do the same for all sizes, masks, types, ranks and after a save?
# scope: host
# needs: [torch, model]
# timeout_s: 240
# climbs: []
# after: [model_load]
# means: The model runs, but some batch, mask, precision, configuration or save of it gives another result than it must.
# ///
"""Seven suites on the user's model, each in a child of its own, and one rank against N.

Environment: TRAINPROBE_MODEL and TRAINPROBE_SAMPLE (pkg.module:factory, file.py:factory; the model also as a folder with config.json),
TRAINPROBE_DEVICE, TRAINPROBE_BENCH_STEPS, TRAINPROBE_FUZZ, TRAINPROBE_SEED. Flags: --model, --sample, --device, --bench-steps, --fuzz, --seed,
--suites A,B, --ranks, --timeout-s. The sample is a batch, or makes one; one that takes two arguments is asked for (rows, length).
Measures: <property>.<what was compared> with its threshold, and what and where (the module, parameter, buffer, attribute, option or size).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _given  # isort: skip  # noqa: F401 - before _emit, which takes this folder off the path
import _memory  # isort: skip  # noqa: F401 - the suites ask it
import _stress.suites  # isort: skip  # noqa: F401 - it knows its own folder from here on
import _emit
from _stress import telling
from _stress.asked import Asked, asked
from _stress.children import as_child, in_a_child
from _stress.stress import Stress

PROGRAM = os.path.realpath(__file__)


def alone(given: Asked) -> None:
    """Be a fresh child: import, and do the one suite."""

    def work(look: Any) -> Any:
        stress = Stress(given, os.path.dirname(given.alone), look, PROGRAM)
        stress.load()
        with open(f"{given.alone}.known", encoding="utf-8") as file:
            stress.know(json.load(file))
        return stress.call(os.path.basename(given.alone), look)

    as_child(work, given.alone, given.timeout_s)


def main() -> None:
    given = asked()
    if given.alone:
        alone(given)
    with _emit.scratch_folder("stress") as folder:
        outcome = in_a_child(
            lambda look: Stress(given, folder, look, PROGRAM).whole(), os.path.join(folder, "whole"), max(5.0, given.timeout_s - 3), heard=True
        )
        if outcome.how != "done":
            telling.broken(outcome)
    raise SystemExit(outcome.answer)


if __name__ == "__main__":
    main()
