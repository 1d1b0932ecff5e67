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

import functools
import importlib
import os
import shutil
import sys
import tempfile
import time
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _given  # isort: skip  # before _emit, which takes this folder off the path
import _memory  # isort: skip  # noqa: F401 - the suites ask it
import _stress.suites  # isort: skip  # noqa: F401 - it knows its own folder from here on
import _emit
from _stress import telling
from _stress.asked import RANKS, SUITES, Asked, asked

SHARES = {"shapes": 3.0, "masks": 2.0, "tying": 2.0, "precision": 2.0, "serialization": 2.0, "fuzz": 3.0, "throughput": 1.5, "ranks": 2.0}


def stress(given: Asked, folder: str, began: float) -> None:
    """Run what was asked for and give the answer."""

    def left_s() -> float:
        return given.timeout_s - 5 - (time.monotonic() - began)

    with _emit.phase("import"):
        from _stress.baseline import first_look
        from _stress.children import in_a_child
        from _stress.subject import Subject

        try:
            subject = Subject(given)
        except _given.GivenError as error:
            telling.refused(error)
    with _emit.phase("first look"):
        first = in_a_child(lambda look: first_look(subject, look), os.path.join(folder, "first"), max(5.0, 0.4 * left_s()))
    if not telling.first_look(first):
        telling.no_model(first)
    subject.kind, subject.traits = first.answer.kind, first.answer.traits
    lines: List[telling.Line] = [telling.evaluation(first)]
    wanted = [one for one in (*SUITES, RANKS) if one in given.suites]
    for place, name in enumerate(wanted):
        share = SHARES[name] / sum(SHARES[one] for one in wanted[place:])
        with _emit.phase(f"suite:{name}"):
            suite: Any = importlib.import_module(f"_stress.suites.{name}")
            outcome = in_a_child(functools.partial(suite.run, subject), os.path.join(folder, name), max(3.0, min(left_s(), 2 * share * left_s())))
        lines.append(telling.tell(name, outcome))
    telling.answer(lines)


def main() -> None:
    given = asked()
    began, events = time.monotonic(), os.environ.get("TRAINPROBE_EVENTS", "")
    folder = tempfile.mkdtemp(prefix="trainprobe-stress-", dir=os.path.dirname(events) or None)
    try:
        stress(given, folder, began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
