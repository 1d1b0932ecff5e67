"""Import what the script imports, build its data as it would, and fork: started by fork_safety, in a process that may be ended at any moment.

Use: python _prepare.py FOLDER. FOLDER/now holds the step under way, FOLDER/rows.jsonl what was found, FOLDER/prepare.stack faulthandler's words.
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
import traceback
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import _given
from _dataset import objects
from _fork import _children, _operations, _state

del sys.path[:2]  # neither the probes nor this folder may shadow what the user's code imports
ROWS = 64  # asked of a factory that takes how many
OWN_S = 15
HELD_S, PATIENCE_S, TRIES = 0.5, 2.0, 3


class Preparation:
    """The process that will fork: what each step started in it, and what the children then met."""

    def __init__(self, folder: str) -> None:
        self.folder, self.starts = folder, _state.Starts()
        self.known, self.cuda = _state.tasks(), ""
        self.source: Any = None
        self.rows: List[Dict[str, Any]] = []  # of children that did not get through

    def tell(self, kind: str, **fields: Any) -> None:
        with open(f"{self.folder}/rows.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **fields}, default=repr) + "\n")

    def now(self, step: str) -> None:
        with open(f"{self.folder}/now", "w", encoding="utf-8") as file:
            file.write(step)

    def step(self, name: str, run: Any) -> Any:
        """Run one step and write down what it left behind: threads, CUDA, and the exception where it raised."""
        self.now(name)
        began, error, made = time.monotonic(), {}, None
        try:
            made = run()
        except BaseException as raised:  # an import that raises, or leaves by sys.exit, is the answer of another rung
            error = raised_as(raised)
        there = _state.tasks()
        started = [{"comm": comm, **self.starts.by_id.get(task, {"name": "", "where": ""})} for task, comm in there.items() if task not in self.known]
        touched = "" if self.cuda else _state.cuda_touched()
        self.known, self.cuda = there, self.cuda or touched
        self.tell("step", step=name, took_s=round(time.monotonic() - began, 4), started=started, threads=len(there), cuda=touched, error=error)
        if any(not one["name"] for one in started):
            self._pools(name)
        return made

    def _pools(self, step: str) -> None:
        """Fork what calculates in several threads: the first step after which it does not get through is the one that made the fork unsafe."""
        self.now(f"fork after {step}")
        done = {row["op"] for row in self.rows}
        tried = _children.attempt(self.folder, [one for one in _operations.of_libraries() if one.pooled and one.name not in done], f"after{len(self.known)}-")
        self.rows += [{**row, "after": step} for row in tried if row["outcome"] != "passed"]

    def build(self, text: str) -> None:
        """Make the data and look at it as a script does before it builds its loaders."""
        made = self.step("data", lambda: objects.call(_given.load_given(text), ROWS))
        if made is not None:
            with contextlib.suppress(objects.NonsenseError):  # the rung of the data says so
                self.source = objects.sources_of(made)[0]

    def forks(self) -> None:
        """Fork the operations of the libraries, then a sample of the data, at a moment when other threads hold what they hold."""
        self.now("fork")
        found = _operations.of_libraries()
        found += [_operations.Operation("torch.zeros on the GPU", "torch", _operations.on_cuda, 8.0)] if self.cuda == "torch.cuda" else []
        done = {row["op"] for row in self.rows}
        rows = self.rows + _children.attempt(self.folder, [one for one in found if one.name not in done])
        sample = []
        shared: List[Tuple[str, Any]] = []
        if self.source is not None:
            sample = [_operations.Operation("a sample of the data", "data", _operations.first_sample(self.source), 4.0)]
        if _state.others_at():
            shared = _state.shared_locks(_state.locks({"data": self.source.dataset} if self.source is not None else {}), HELD_S, PATIENCE_S)
        rows += self._while_held(shared, sample)
        if not any(row["op"] == one.name for one in sample for row in rows):
            rows += _children.attempt(self.folder, sample, "sample")
        for row in rows:
            self.tell("child", **row)
        for row in rows:
            if row["outcome"] != "passed":
                self._control(row, [*found, *sample], dict(shared))

    def _while_held(self, shared: List[Tuple[str, Any]], sample: List[_operations.Operation]) -> List[Dict[str, Any]]:
        """Fork while another thread holds a lock that this one can have too: nobody holds it in the child, and nobody will let it go."""
        rows: List[Dict[str, Any]] = []
        for name, lock in shared:
            taken = _operations.Operation(f"acquire {name}", "lock", lambda lock=lock: lock.acquire(timeout=60), PATIENCE_S)  # type: ignore[misc]
            for attempt in range(TRIES):
                until = time.monotonic() + 1.0
                while time.monotonic() < until and not _state.held_now(lock):
                    time.sleep(0.001)
                others = _state.others_at()
                tried = _children.attempt(self.folder, [taken, *sample], f"held{len(rows)}{attempt}")
                bad = [row for row in tried if row["outcome"] == "hangs"]
                if bad or attempt == TRIES - 1:
                    rows += [{**row, "lock": name, "others": others} for row in tried]
                    break
        return rows

    def _control(self, row: Dict[str, Any], known: List[_operations.Operation], shared: Dict[str, Any]) -> None:
        """The same once more in this process, which was not forked."""
        self.now(f"control: {row['op']}")
        began = time.monotonic()
        operation = next((one for one in known if one.name == row["op"]), None)
        try:
            had = True
            if operation is not None:
                operation.run()
            elif had := shared[row["lock"]].acquire(timeout=PATIENCE_S):
                shared[row["lock"]].release()
            error = {} if had else {"type": "TimeoutError", "message": "it could not be had", "frames": []}
        except Exception as raised:  # whatever the user's data raises
            error = raised_as(raised)
        self.tell("control", op=row["op"], took_s=round(time.monotonic() - began, 4), error=error)

    def what_if(self) -> None:
        """What a product in several threads before the fork would do to a child: of this machine's libraries, not of the script."""
        torch = sys.modules.get("torch")
        if torch is None or torch.get_num_threads() < 2:
            return
        self.now("what if")
        _operations.product()
        for row in _children.attempt(self.folder, [one for one in _operations.of_libraries() if one.library == "torch"], "if"):
            self.tell("what-if", **row)

    def maps(self) -> None:
        if "datasets" in sys.modules:
            self.now("map of datasets")
            for row in _children.attempt(self.folder, [_operations.Operation("datasets.map", "datasets", _operations.map_of_datasets, 8.0)], "map"):
                self.tell("map", **row)


def names_in(variable: str) -> List[str]:
    return [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]


def own_module(name: str) -> Any:
    """Import a module of the user's own. One that waits for other ranks as it is imported is given up, and must not cost the answer."""

    def enough(number: int, frame: Any) -> None:
        del number, frame
        raise TimeoutError(f"it took longer than {OWN_S} s")

    signal.signal(signal.SIGALRM, enough)
    signal.alarm(OWN_S)
    try:
        return importlib.import_module(name)
    finally:
        signal.alarm(0)


def raised_as(error: BaseException) -> Dict[str, Any]:
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith((ours, "<frozen"))]
    rows = [{"file": one.filename, "line": one.lineno, "function": one.name} for one in frames[-60:]]
    return {"type": type(error).__name__, "message": str(error)[:2000], "frames": rows}


def main() -> None:
    folder = sys.argv[1]
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")
    faulthandler.enable(open(f"{folder}/prepare.stack", "w", encoding="utf-8"), all_threads=True)  # noqa: SIM115 - open until the end
    _given.look_in([])
    me = Preparation(folder)
    sys.argv = [os.environ.get("TRAINPROBE_SCRIPT") or sys.argv[0]]  # some modules read it as they are imported
    for name in names_in("TRAINPROBE_IMPORTS"):
        me.step(f"import {name}", functools.partial(importlib.import_module, name))
    for name in names_in("TRAINPROBE_LOCAL_IMPORTS"):
        me.step(f"import {name}", functools.partial(own_module, name))
    if os.environ.get("TRAINPROBE_DATASET"):
        me.build(os.environ["TRAINPROBE_DATASET"])
    loaded, torch = _state.runtimes(), sys.modules.get("torch")
    me.tell(
        "state", runtimes=loaded, families=_state.families(loaded), others=_state.others_at(), torch_threads=torch.get_num_threads() if torch is not None else 0
    )
    try:
        me.forks()
        me.maps()
        me.what_if()
        me.tell("done")
    except Exception as error:  # nothing of the user's runs outside the guards above: it is ours, and must not be lost
        me.tell("broken", error=raised_as(error))
    os._exit(0)  # whatever the user's code registered for the end is not ours to wait for


main()
