"""All suites one after the other, in a process that has imported what the user named; each suite is a child of that."""

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

import _emit
import _given
from _stress import telling
from _stress.asked import RANKS, SUITES, Asked
from _stress.children import in_a_child, in_a_fresh_one, why_not_fork
from _stress.look import Look

SHARES = {"shapes": 3.0, "masks": 2.0, "tying": 2.0, "precision": 2.0, "serialization": 2.0, "fuzz": 3.0, "throughput": 1.5, "ranks": 2.0}
SMALL = 5_000_000  # parameters: one thread is faster then, and a busy host stretches it less
FIRST = "first"


class Stress:
    """`program` is the file that a fresh child is started with."""

    def __init__(self, given: Asked, folder: str, look: Look, program: str) -> None:
        self.program = program
        self.given, self.folder, self.look, self.began = given, folder, look, time.monotonic()
        self.argv = sys.argv
        self.why_fresh = ""
        self.subject: Any = None
        self.known: Dict[str, Any] = {}

    def left_s(self) -> float:
        """Until the answer must be given, with some seconds to end a child that stands."""
        return self.given.timeout_s - 6 - (time.monotonic() - self.began)

    def load(self) -> None:
        """Import what the user named. It sees the command line of a program without flags, as `python file.py` would have it."""
        self.look.step("torch")
        from _stress.subject import Subject

        self.look.step("import")
        sys.argv = [self.given.model.rpartition(":")[0] or self.given.model]
        try:
            self.subject = Subject(self.given)
        except _given.GivenError as error:
            telling.refused(error)
        finally:
            sys.argv = [*sys.argv[:1]]
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a module of the user's may have set it, and its children would not be waited for

    def call(self, name: str, look: Any) -> Any:
        """Do one child's work, in the child."""
        import torch

        traits = self.subject.traits
        if 0 < traits.parameters < SMALL:
            torch.set_num_threads(1)
        if name == FIRST:
            from _stress.baseline import first_look

            return first_look(self.subject, look)
        return importlib.import_module(f"_stress.suites.{name}").run(self.subject, look)

    def child(self, name: str, deadline_s: float) -> Any:
        path = os.path.join(self.folder, name)
        if not self.why_fresh:
            return in_a_child(functools.partial(self.call, name), path, deadline_s)
        with open(f"{path}.known", "w", encoding="utf-8") as out:
            json.dump(self.known, out)
        given = self.given
        flags = [f"--{one.replace('_', '-')}={getattr(given, one)}" for one in ("model", "sample", "device", "bench_steps", "fuzz", "seed", "ranks")]
        program = [sys.executable, self.program, *flags, f"--timeout-s={deadline_s}", f"--suites={name if name != FIRST else ''}"]
        return in_a_fresh_one([*program, f"--alone={path}"], path, min(deadline_s + 30, max(2.0, self.left_s() + 2)))

    def know(self, answer: Dict[str, Any]) -> None:
        """Take over what the first look told; nothing before it."""
        from _stress.subject import Traits

        self.known = answer
        if answer:
            self.subject.kind, self.subject.traits = answer["kind"], Traits(**answer["traits"])

    def import_too(self, names: List[str]) -> None:
        """Import here what the factory imported in the first child, or each child would do it again; a fresh one does."""
        if names and not self.why_fresh:
            for name in names:
                with contextlib.suppress(Exception):  # a name may be one that its package puts there by itself
                    importlib.import_module(name)
            self.why_fresh = why_not_fork(_canary, os.path.join(self.folder, "canary2"))

    def run(self) -> None:
        """Run what was asked for and give the answer."""
        with _emit.phase("import"):
            self.load()
        self.look.step("suites")
        faulthandler.cancel_dump_traceback_later()  # its thread is none of the user's
        self.why_fresh = why_not_fork(_canary, os.path.join(self.folder, "canary"))
        if self.why_fresh:
            _emit.note(f"Each suite imports anew: {self.why_fresh}, so that a forked child could stand still.")
        with _emit.phase("first look"):
            first = self.child(FIRST, max(1.0, 0.4 * self.left_s()))
        if not telling.first_look(first):
            telling.no_model(first)
        self.import_too(first.answer["imported"])
        self.know(first.answer)
        lines: List[telling.Line] = [telling.evaluation(first)]
        wanted = [one for one in (*SUITES, RANKS) if one in self.given.suites]
        for place, name in enumerate(wanted):
            share = SHARES[name] / sum(SHARES[one] for one in wanted[place:])
            with _emit.phase(f"suite:{name}"):
                outcome = self.child(name, max(1.0, min(self.left_s(), 2 * share * self.left_s())))
            lines.append(telling.tell(name, outcome))
        telling.answer(lines)

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
