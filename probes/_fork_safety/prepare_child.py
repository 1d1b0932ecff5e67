"""Import what the script imports, build its data as it would, and fork: started by fork_safety, in
a process that may be ended at any moment.

Use: python prepare_child.py FOLDER. FOLDER/prepare.now holds the step under way,
prepare.rows what it found, prepare.stack faulthandler's dump.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import signal
import sys
import time
from typing import Any, Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from _fork_safety import forked_children, operations, process_state
from _shared import child_program, data_sources, named_object

del sys.path[:2]  # neither the probes nor this folder may shadow what the user's code imports
ROWS = 64  # asked of a factory that takes how many
OWN_S = 15
HELD_S, PATIENCE_S, TRIES = 0.5, 2.0, 3


class Preparation:
    """The process that will fork: what each step started in it, and what the children then met."""

    def __init__(self, folder: str) -> None:
        self.folder, self.starts = folder, process_state.Starts()
        self.known, self.cuda = process_state.tasks(), ""
        self.source: Any = None
        self.rows: List[Dict[str, Any]] = []  # of children that did not get through

    def tell(self, kind: str, **fields: Any) -> None:
        with open(f"{self.folder}/prepare.rows", "a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **fields}, default=repr) + "\n")

    def now(self, step: str) -> None:
        child_program.write(f"{self.folder}/prepare.now", step)

    def step(self, name: str, run: Any) -> Any:
        """Run one step; record the threads, CUDA state and exception that it leaves behind."""
        self.now(name)
        began, error, made = time.monotonic(), {}, None
        try:
            made = run()
        except BaseException as raised:
            # an import that raises, or leaves by sys.exit, is the answer of another rung
            error = child_program.error_fields(raised)
        there = process_state.tasks()
        started = [
            {"comm": comm, **self.starts.by_id.get(task, {"name": "", "where": ""})}
            for task, comm in there.items()
            if task not in self.known
        ]
        touched = "" if self.cuda else process_state.cuda_touched()
        self.known, self.cuda = there, self.cuda or touched
        self.tell(
            "step",
            step=name,
            took_s=round(time.monotonic() - began, 4),
            started=started,
            threads=len(there),
            cuda=touched,
            error=error,
        )
        if any(not item["name"] for item in started):
            self._pools(name)
        return made

    def _pools(self, step: str) -> None:
        """Fork what uses thread pools; the first step after which it hangs made the fork unsafe."""
        self.now(f"fork after {step}")
        done = {row["op"] for row in self.rows}
        tried = forked_children.attempt(
            self.folder,
            [item for item in operations.of_libraries() if item.pooled and item.name not in done],
            f"after{len(self.known)}-",
        )
        self.rows += [{**row, "after": step} for row in tried if row["outcome"] != "passed"]

    def build(self, text: str) -> None:
        """Make the data and look at it as a script does before it builds its loaders."""
        made = self.step(
            "data", lambda: data_sources.call(named_object.load_named_object(text), ROWS)
        )
        if made is not None:
            with contextlib.suppress(data_sources.NonsenseError):  # the rung of the data says so
                self.source = data_sources.sources_of(made)[0]

    def forks(self) -> None:
        """Fork the libraries' operations, then a data sample, while other threads hold locks."""
        self.now("fork")
        found = operations.of_libraries()
        found += (
            [operations.Operation("torch.zeros on the GPU", "torch", operations.on_cuda, 8.0)]
            if self.cuda == "torch.cuda"
            else []
        )
        done = {row["op"] for row in self.rows}
        rows = self.rows + forked_children.attempt(
            self.folder, [item for item in found if item.name not in done]
        )
        sample = []
        shared: List[Tuple[str, Any]] = []
        if self.source is not None:
            sample = [
                operations.Operation(
                    "a sample of the data", "data", operations.first_sample(self.source), 4.0
                )
            ]
        if process_state.others_at():
            shared = process_state.shared_locks(
                process_state.locks(
                    {"data": self.source.dataset} if self.source is not None else {}
                ),
                HELD_S,
                PATIENCE_S,
            )
        rows += self._while_held(shared, sample)
        if not any(row["op"] == item.name for item in sample for row in rows):
            rows += forked_children.attempt(self.folder, sample, "sample")
        for row in rows:
            self.tell("child", **row)
        for row in rows:
            if row["outcome"] != "passed":
                self._control(row, [*found, *sample], dict(shared))

    def _while_held(
        self, shared: List[Tuple[str, Any]], sample: List[operations.Operation]
    ) -> List[Dict[str, Any]]:
        """Fork while another thread holds a lock: the child can never take it."""
        rows: List[Dict[str, Any]] = []
        for name, lock in shared:
            taken = operations.Operation(
                f"acquire {name}",
                "lock",
                lambda lock=lock: lock.acquire(timeout=60),  # type: ignore[misc]
                PATIENCE_S,
            )
            for attempt in range(TRIES):
                until = time.monotonic() + 1.0
                while time.monotonic() < until and not process_state.held_now(lock):
                    time.sleep(0.001)
                others = process_state.others_at()
                tried = forked_children.attempt(
                    self.folder, [taken, *sample], f"held{len(rows)}{attempt}"
                )
                bad = [row for row in tried if row["outcome"] == "hangs"]
                if bad or attempt == TRIES - 1:
                    rows += [{**row, "lock": name, "others": others} for row in tried]
                    break
        return rows

    def _control(
        self, row: Dict[str, Any], known: List[operations.Operation], shared: Dict[str, Any]
    ) -> None:
        """The same once more in this process, which was not forked."""
        self.now(f"control: {row['op']}")
        began = time.monotonic()
        operation = next((item for item in known if item.name == row["op"]), None)
        try:
            had = True
            if operation is not None:
                operation.run()
            elif had := shared[row["lock"]].acquire(timeout=PATIENCE_S):
                shared[row["lock"]].release()
            error = (
                {}
                if had
                else {"type": "TimeoutError", "message": "it could not be had", "frames": []}
            )
        except Exception as raised:  # whatever the user's data raises
            error = child_program.error_fields(raised)
        self.tell("control", op=row["op"], took_s=round(time.monotonic() - began, 4), error=error)

    def what_if(self) -> None:
        """What a threaded product before a fork does to a child with this machine's libraries."""
        torch = sys.modules.get("torch")
        if torch is None or torch.get_num_threads() < 2:
            return
        self.now("what if")
        operations.product()
        for row in forked_children.attempt(
            self.folder,
            [item for item in operations.of_libraries() if item.library == "torch"],
            "if",
        ):
            self.tell("what-if", **row)

    def maps(self) -> None:
        if "datasets" in sys.modules:
            self.now("map of datasets")
            for row in forked_children.attempt(
                self.folder,
                [operations.Operation("datasets.map", "datasets", operations.map_of_datasets, 8.0)],
                "map",
            ):
                self.tell("map", **row)


def names_in(variable: str) -> List[str]:
    return [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]


def own_module(name: str) -> Any:
    """Import a user's module; give up where it waits for other ranks while it is imported."""

    def enough(number: int, frame: Any) -> None:
        del number, frame
        raise TimeoutError(f"it took longer than {OWN_S} s")

    signal.signal(signal.SIGALRM, enough)
    signal.alarm(OWN_S)
    try:
        return importlib.import_module(name)
    finally:
        signal.alarm(0)


def main() -> None:
    folder = sys.argv[1]
    child_program.prepare(folder, "prepare")
    named_object.prepend_to_path([])
    me = Preparation(folder)
    # some modules read it as they are imported
    sys.argv = [os.environ.get("TRAINPROBE_SCRIPT") or sys.argv[0]]
    for name in names_in("TRAINPROBE_IMPORTS"):
        me.step(f"import {name}", functools.partial(importlib.import_module, name))
    for name in names_in("TRAINPROBE_LOCAL_IMPORTS"):
        me.step(f"import {name}", functools.partial(own_module, name))
    if os.environ.get("TRAINPROBE_DATASET"):
        me.build(os.environ["TRAINPROBE_DATASET"])
    loaded, torch = process_state.runtimes(), sys.modules.get("torch")
    me.tell(
        "state",
        runtimes=loaded,
        families=process_state.families(loaded),
        others=process_state.others_at(),
        torch_threads=torch.get_num_threads() if torch is not None else 0,
    )
    try:
        me.forks()
        me.maps()
        me.what_if()
        me.tell("done")
    except Exception as error:
        # nothing of the user's runs outside the guards above: it is ours, and must not be lost
        me.tell("broken", error=child_program.error_fields(error))
    os._exit(0)  # whatever the user's code registered for the end is not ours to wait for


main()
