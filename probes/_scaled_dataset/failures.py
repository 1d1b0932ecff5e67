"""What went wrong in a child, in one sentence, and as the event that the tool reads."""

from __future__ import annotations

import re
import signal
from typing import Any, Dict, List, NamedTuple, Optional

from _scaled_dataset.cells import IDLE_SHARE, CellRun, ChildRun, Stack, main_thread
from _shared.child_processes import signal_name

BEFORE = ("start", "import of torch", "process group")  # nothing of the user's has run yet
RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): [^\n]+", re.MULTILINE)
PATIENCE_S, IDLE_S = 15.0, 5.0
IMPORTS = 4  # a spawned worker imports what its parent has imported, and several do so at one time


class Failure(NamedTuple):
    """`kind` as in the event: raised, nonsense, died, stood, …; `more` are fields of the event."""

    kind: str
    sentence: str
    more: Dict[str, Any]


def of_cell(cell: CellRun, task: Dict[str, Any], dataset: str) -> Optional[Failure]:
    """The first failure of a cell: a child that reported one, one that died, one that stalled."""
    for kind in ("failed", "died", "stood"):
        for run in cell.runs:
            if run.how == kind:
                return (
                    _reported(run, task, dataset)
                    if kind == "failed"
                    else (
                        _died(run, cell, task, dataset)
                        if kind == "died"
                        else _stood(run, cell, task, dataset)
                    )
                )
    for run in cell.runs:
        for line in run.of("nothing"):
            return Failure("nonsense", line["says"], _labels(run, task))
    return None


def _reported(run: ChildRun, task: Dict[str, Any], dataset: str) -> Failure:
    line = next(
        line
        for line in reversed(run.lines)
        if line["what"] in ("mistyped", "nonsense", "raised") and not line.get("soft")
    )
    if line["what"] != "raised":
        return Failure(line["what"], line["says"], _labels(run, task))
    return raised(line, run, task, dataset)


def raised(line: Dict[str, Any], run: ChildRun, task: Dict[str, Any], dataset: str) -> Failure:
    """An exception of the user's, as `_emit.fail_exception` would tell it."""
    message, frames = str(line.get("message", "")), line.get("frames") or []
    first = next((text for text in message.splitlines() if text.strip()), "")
    # what a worker raised stands at the end
    last = message.rstrip().splitlines()[-1] if "Original Traceback" in message else ""
    what = last.strip() or f"{line['type']}: {first}".rstrip(": ")
    how = f"called sys.exit({first!r})" if line["type"] == "SystemExit" else f"raised {what[:300]}"
    sentence = (
        f"{_doing(run, task, dataset)} {how}{_at(frames, anywhere=False) if not last else ''}"
    )
    more = {"type": line["type"], "message": message, "frames": frames, "output": run.tail[-1500:]}
    return Failure("raised", sentence, {**_labels(run, task), **more})


def _died(run: ChildRun, cell: CellRun, task: Dict[str, Any], dataset: str) -> Failure:
    code = run.code or 0
    how = (
        f"was killed by {signal_name(-code)}"
        if code < 0
        else f"ended by itself with exit code {code}, without an exception"
    )
    if code == -signal.SIGKILL and cell.oom_kills:
        how += f"; the kernel counted {cell.oom_kills} out-of-memory kills in this cgroup meanwhile"
    if run.of("closed"):
        how += (
            f"; the factory had closed {run.of('closed')[0]['fds']} descriptors that were not"
            " its own"
        )
    frames = (
        main_thread(run.tail.rpartition("Fatal Python error")[2])
        if "Fatal Python error" in run.tail
        else []
    )
    how += _at(frames) or _printed(run)
    more = {
        "frames": frames,
        "signal": signal_name(-code) if code < 0 else "",
        "code": max(code, 0),
        "oom_kills": cell.oom_kills,
        "output": run.tail[-1500:],
    }
    return Failure(
        "died", f"{_doing(run, task, dataset)}: the process {how}", {**_labels(run, task), **more}
    )


def too_soon(cell: CellRun) -> bool:
    """Whether a slow start looks the same: by CPU time if busy, by the clock if idle."""
    phases = [run.phase for run in cell.runs if run.how == "stood"]
    if any(phase in BEFORE for phase in phases):
        return True
    if cell.cpu_s < IDLE_SHARE * cell.waited_s:
        return cell.waited_s < IDLE_S
    starts = [
        line["at"] - run.lines[0]["at"]
        for run in cell.runs
        for line in run.of("phase")
        if line["phase"] in ("process group", "factory", "len()")
    ]
    return any(phase.startswith("import of") for phase in phases) or cell.cpu_s < max(
        PATIENCE_S, IMPORTS * max(starts, default=0.0)
    )


def _stood(run: ChildRun, cell: CellRun, task: Dict[str, Any], dataset: str) -> Failure:
    main = next((stack for stack in run.stacks if not stack.worker), None)
    busy = [stack for stack in run.stacks if stack.worker and not _idle(stack)]
    where = ""
    if busy:
        where = f"; worker {busy[0].pid} stands{_at(busy[0].frames)}"
    elif main is not None and main.frames:
        where = f"; it stands{_at(main.frames)}"
    shown = busy[0] if busy else main
    more = {
        "frames": shown.frames if shown is not None else [],
        "in_worker": bool(busy),
        "waited_s": round(cell.waited_s, 1),
        "stacks": [
            {"pid": stack.pid, "worker": stack.worker, "frames": stack.frames[-20:]}
            for stack in run.stacks[:8]
        ],
        "output": run.tail[-1500:],
    }
    sentence = (
        f"{_doing(run, task, dataset)} made no progress for {cell.waited_s:.0f}"
        f" s{where}{_printed(run)}"
    )
    return Failure("stood", sentence, {**_labels(run, task), **more})


def _printed(run: ChildRun) -> str:
    """The last printed exception that ended nothing, as of a worker's sending thread."""
    found = RAISED.findall(run.tail)
    return f"; before that it printed {found[-1][:160]}" if found else ""


def _idle(stack: Stack) -> bool:
    """A worker that waits for its next task."""
    return any(
        frame["function"] in ("poll", "get", "_recv_bytes", "accept", "select")
        and "multiprocessing" in frame["file"]
        for frame in stack.frames[-3:]
    ) or not any(
        "site-packages" not in frame["file"] and "/lib/python" not in frame["file"]
        for frame in stack.frames
    )


def _doing(run: ChildRun, task: Dict[str, Any], dataset: str) -> str:
    phase, rows = run.phase, _rows(run, task)
    who = f"Rank {run.rank}: " if task["ranks"] > 1 else ""
    if phase == "factory":
        own = any(
            isinstance(line.get("rows"), int)
            for line in run.of("phase")
            if line["phase"] == "factory"
        )
        text = f"The factory {dataset}{f' ({rows} rows)' if own else ''}"
    elif phase in ("reading", "first rows"):
        text = f"Reading {rows} rows with {of_workers(task['workers'], task['method'])}"
    elif phase == "len()":
        text = "len() of the data"
    else:
        text = phase[:1].upper() + phase[1:]
    return who + text


def of_workers(workers: int, method: str) -> str:
    return f"{workers} {'worker' if workers == 1 else 'workers'}{f' ({method})' if workers else ''}"


def _rows(run: ChildRun, task: Dict[str, Any]) -> int:
    found: List[int] = [
        line["rows"] for line in run.of("phase") if isinstance(line.get("rows"), int)
    ]
    return found[-1] if found else task["rows"][0]


def _labels(run: ChildRun, task: Dict[str, Any]) -> Dict[str, Any]:
    where = {
        "rows": _rows(run, task),
        "workers": task["workers"],
        "method": task["method"],
        "ranks": task["ranks"],
    }
    return {**where, "of_rank": run.rank, "step": run.phase}


def _at(frames: List[Dict[str, Any]], *, anywhere: bool = True) -> str:
    """` at file.py:12 in f`: the user's innermost frame, else the innermost of all."""
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame["file"]
        and "/lib/python" not in frame["file"]
        and not frame["file"].startswith("<")
    ]
    frame = (own or (frames if anywhere else []) or [{}])[-1]
    return (
        f" at {frame['file'].rpartition('/')[2]}:{frame['line']} in {frame['function']}"
        if frame
        else ""
    )
