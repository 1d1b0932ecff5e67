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

import contextlib
import faulthandler
import functools
import importlib
import json
import os
import signal
import sys
import time
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import _emit
from _model_stress import report
from _model_stress.findings import Findings
from _model_stress.request import RANKS, SUITES, StressRequest, read_request
from _model_stress.suite_children import as_child, in_a_child, in_fresh_interpreter, why_not_fork
from _shared import named_object

PROGRAM = os.path.realpath(__file__)
SHARES = {
    "shapes": 3.0,
    "masks": 2.0,
    "tying": 2.0,
    "precision": 2.0,
    "serialization": 2.0,
    "fuzz": 3.0,
    "throughput": 1.5,
    "ranks": 2.0,
}
FIRST = "first"


class SuiteRunner:
    """All suites in turn, in a process that has imported the model; each is a child of that."""

    def __init__(self, request: StressRequest, folder: str, findings: Findings) -> None:
        self.request, self.folder, self.findings = request, folder, findings
        self.began = time.monotonic()
        self.why_fresh = ""
        self.tested: Any = None
        self.known: Dict[str, Any] = {}

    def left_s(self) -> float:
        """Seconds until the answer must be given, less a reserve for ending a child that hangs."""
        return self.request.timeout_s - 6 - (time.monotonic() - self.began)

    def load(self) -> None:
        """Import the model with the command line that `python file.py` would have."""
        self.findings.step("torch")
        from _model_stress.tested_model import TestedModel

        self.findings.step("import")
        sys.argv = [self.request.model.rpartition(":")[0] or self.request.model]
        try:
            self.tested = TestedModel(self.request)
        except named_object.NamedObjectError as error:
            report.refused(error)
        finally:
            sys.argv = [*sys.argv[:1]]
            # a module of the user's may have set it, and its children would not be waited for
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def call(self, name: str, findings: Any) -> Any:
        """Do one child's work, in the child."""
        from _model_stress.tested_model import threads_for

        traits = self.tested.traits
        if traits.parameters:
            threads_for(traits.parameters)
        if name == FIRST:
            from _model_stress.baseline import first_look

            return first_look(self.tested, findings)
        return importlib.import_module(f"_model_stress.suites.{name}").run(self.tested, findings)

    def child(self, name: str, deadline_s: float) -> Any:
        path = os.path.join(self.folder, name)
        if not self.why_fresh:
            return in_a_child(functools.partial(self.call, name), path, deadline_s)
        with open(f"{path}.known", "w", encoding="utf-8") as out:
            json.dump(self.known, out)
        request = self.request
        flags = [
            f"--{item.replace('_', '-')}={getattr(request, item)}"
            for item in ("model", "sample", "device", "bench_steps", "fuzz", "seed", "ranks")
        ]
        program = [
            PROGRAM,
            *flags,
            f"--timeout-s={deadline_s}",
            f"--suites={name if name != FIRST else ''}",
        ]
        return in_fresh_interpreter(
            [*program, f"--alone={path}"], path, min(deadline_s + 30, max(2.0, self.left_s() + 2))
        )

    def know(self, answer: Dict[str, Any]) -> None:
        """Take over the results of the first look."""
        from _model_stress.tested_model import Traits

        self.known = answer
        if answer:
            self.tested.kind, self.tested.traits = answer["kind"], Traits(**answer["traits"])

    def import_too(self, names: List[str]) -> None:
        """Import what the factory imported in the first child, so that forked children need not."""
        if names and not self.why_fresh:
            for name in names:
                # a name may be one that its package puts there by itself
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
            self.why_fresh = why_not_fork(_canary, os.path.join(self.folder, "canary2"))

    def run(self) -> None:
        """Run what was asked for and give the answer."""
        with _emit.phase("import"):
            self.load()
        self.findings.step("suites")
        faulthandler.cancel_dump_traceback_later()  # its thread is none of the user's
        self.why_fresh = why_not_fork(_canary, os.path.join(self.folder, "canary"))
        if self.why_fresh:
            _emit.note(f"Each suite imports again: {self.why_fresh}, so a forked child could hang.")
        with _emit.phase("first look"):
            first = self.child(FIRST, max(1.0, 0.4 * self.left_s()))
        if not report.first_look(first):
            report.no_model(first)
        self.import_too(first.answer["imported"])
        self.know(first.answer)
        lines: List[report.SuiteLine] = [report.evaluation(first)]
        wanted = [item for item in (*SUITES, RANKS) if item in self.request.suites]
        for place, name in enumerate(wanted):
            share = SHARES[name] / sum(SHARES[item] for item in wanted[place:])
            with _emit.phase(f"suite:{name}"):
                outcome = self.child(name, max(1.0, min(self.left_s(), 2 * share * self.left_s())))
            lines.append(report.tell(name, outcome))
        report.answer(lines)

    def whole(self) -> int:
        try:
            self.run()
        except SystemExit as answered:  # by _emit.result
            return int(answered.code or 0)
        return 1


def _canary() -> None:
    """Work on all of torch's threads, forward and back."""
    import torch

    many = torch.ones(1 << 20, requires_grad=True)
    (many.exp().sum() + many.reshape(1024, 1024).mm(many.reshape(1024, 1024)).sum()).backward()


def alone(request: StressRequest) -> None:
    """Be a fresh child: import, and do the one suite."""

    def work(findings: Any) -> Any:
        stress = SuiteRunner(request, os.path.dirname(request.alone), findings)
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
            lambda findings: SuiteRunner(request, folder, findings).whole(),
            os.path.join(folder, "whole"),
            max(5.0, request.timeout_s - 3),
            visible=True,
        )
        if outcome.how != "done":
            report.broken(outcome)
    raise SystemExit(outcome.answer)


if __name__ == "__main__":
    main()
