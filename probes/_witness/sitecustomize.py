"""The witness: what a rank of the user's own program does, told from inside, without a change to
the program.

Python imports `sitecustomize` by itself at start when this folder is in PYTHONPATH. With
TRAINPROBE_WITNESS_DIR set, events go to DIR/rank<R>.<pid>.jsonl (norank.<pid>.jsonl for a process
without a rank, such as a launcher): `start`, `step`,
`loader.began`, `loader.first_batch`, `loader.empty`, `data_parallel`, `columns.removed`,
`exception`, `leave` (who called sys.exit or os._exit) and `exit` (whose code is null where nobody
told one: a normal end, or a SystemExit that was raised by hand).
Rules: no import of torch and of nothing slow, no thread, no output, no other exit code, no frame of
ours in the user's tracebacks, and every part guarded. Forked children and the children of a rank
stay silent. At the end the next sitecustomize on the path runs.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

TYPE_CHECKING = False  # as typing's, which takes 3 ms to import
if TYPE_CHECKING:
    from typing import Any, Callable

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_DIR = os.environ.get("TRAINPROBE_WITNESS_DIR", "")
_MARK = "TRAINPROBE_WITNESS_OF"  # names the rank's process to its children
_HELPERS = (
    "multiprocessing.resource_tracker",
    "multiprocessing.semaphore_tracker",
    "multiprocessing.forkserver",
    "compile_worker",
)
_saw: dict[str, Any] = {
    "pid": os.getpid(),
    "seq": 0,
    "steps": 0,
    "batches": 0,
    "loaders": 0,
    "told_at": 0.0,
    "code": None,
    "recorded": None,
    "role": "rank",
    "empty": False,
}


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:  # noqa: SIM105 - contextlib takes 1 ms to import
            function(*args, **kwargs)
        except Exception:  # whatever goes wrong here must not reach the user's program
            pass

    return guarded


def _text(value: Any) -> str:
    """JSON without importing json (3 ms); `_json` is its C part and may be missing."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value) if abs(value) < float("inf") else "null"
    if isinstance(value, dict):
        return (
            "{" + ",".join(_text(str(key)) + ":" + _text(item) for key, item in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    from _json import encode_basestring_ascii

    return encode_basestring_ascii(str(value))


def _rank() -> int | None:
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdecimal():
            return int(value)
    return None


@_guarded
def _tell(event: str, name: str, **fields: Any) -> None:
    """Append one event by one write. The file is opened anew, so no descriptor stays open."""
    if os.getpid() != _saw["pid"]:
        return
    rank = _rank()
    _saw["seq"] += 1
    line = (
        _text(
            {
                "event": event,
                "name": name,
                "at": time.time(),
                "rank": rank,
                "seq": _saw["seq"],
                "pid": _saw["pid"],
                **fields,
            }
        )
        + "\n"
    )
    file = os.open(_path("jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, line.encode("utf-8", "replace"))
    finally:
        os.close(file)


def _path(ending: str) -> str:
    rank = _rank()
    return os.path.join(
        _DIR, f"{'norank' if rank is None else f'rank{rank}'}.{_saw['pid']}.{ending}"
    )


# --- what ends the program
# ---------------------------------------------------------------------------------------------


def _frames(traceback: Any) -> list[dict[str, Any]]:
    """Frames outermost first; of a deep stack the outer 20 and the inner 60."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    found = found if len(found) <= 80 else found[:20] + found[-60:]
    return [
        {
            "file": code.co_filename,
            "line": line,
            "function": code.co_name,
            "text": _line(code.co_filename, line),
        }
        for code, line in found
    ]


def _line(path: str, number: int) -> str:
    """Read one line without `linecache`, whose imports change the exit code after an interrupt."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next(
                (line.strip()[:200] for place, line in enumerate(file, 1) if place == number), ""
            )
    except (OSError, ValueError):
        return ""


def _importing(error: BaseException, traceback: Any) -> str:
    """The outermost module whose body ran, or the one that an ImportError did not find."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") not in (
            "__main__",
            None,
        ):
            return str(frame.f_globals["__name__"])
        traceback = traceback.tb_next
    return str(error.name or "") if isinstance(error, ImportError) else ""


def _described(error: BaseException, traceback: Any) -> dict[str, Any]:
    try:
        message = str(error)[:4000]
    except Exception:  # a __str__ of the user's that fails
        message = "<no text>"
    return {
        "type": type(error).__name__,
        "message": message,
        "frames": _frames(traceback),
        "during_import": _importing(error, traceback),
    }


@_guarded
def _record(error: Any, traceback: Any, thread: str) -> None:
    """Record an uncaught exception once, by its id, though hooks may be chained or replaced."""
    if error is None or isinstance(error, SystemExit) or _saw["recorded"] == (id(error), thread):
        return
    _saw["recorded"] = (id(error), thread)
    # that one ends by the signal
    if thread == "MainThread" and not isinstance(error, KeyboardInterrupt):
        _saw["code"] = 1
    fields = {"says": f"{type(error).__name__} was not caught.", "thread": thread}
    _tell("fail", "exception", **fields, **_described(error, traceback))


@_guarded
def _leaving(how: str, code: Any, caller: Any) -> None:
    """Report who ends the program by sys.exit or os._exit, and the exception in progress."""
    if os.getpid() != _saw["pid"]:
        return
    _saw["code"] = code if isinstance(code, int) else 0 if code is None else 1
    where = {
        "file": caller.f_code.co_filename,
        "line": caller.f_lineno,
        "function": caller.f_code.co_name,
    }
    handled = sys.exc_info()[1]
    about = (
        _described(handled, handled.__traceback__)
        if handled is not None and not isinstance(handled, SystemExit)
        else None
    )
    fields = {"says": f"{how} was called.", "how": how, "code": _saw["code"], "handling": about}
    _tell("note", "leave", where=where, **fields)


@_guarded
def _at_exit() -> None:
    if os.getpid() != _saw["pid"]:
        return
    # where a hook did not chain
    _record(getattr(sys, "last_value", None), getattr(sys, "last_traceback", None), "MainThread")
    if _saw["loaders"] and not _saw["batches"] and not _saw["empty"] and not _saw["code"]:
        _tell("note", "loader.empty", says="The loader ended without a batch.", dataset_len=None)
    # torch imports dynamo also where nothing is compiled
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    # a compiled step is not seen: null says so, 0 would not
    unseen = bool(counters.get("frames", {}).get("total")) and not _saw["steps"]
    counts = {
        "optimizer_steps": None if unseen else _saw["steps"],
        "batches": _saw["batches"],
        "backward_calls": None,
    }
    _tell(
        "note",
        "exit",
        says="Python ended.",
        code=_saw["code"],
        torch_imported="torch" in sys.modules,
        **counts,
    )


def _watch_the_end() -> None:
    before, leave, leave_at_once = sys.excepthook, sys.exit, os._exit

    def excepthook(kind: Any, error: Any, traceback: Any) -> None:
        _record(error, traceback, "MainThread")
        before(kind, error, traceback)

    def exit_(*code: Any) -> None:
        _leaving("sys.exit", code[0] if code else None, sys._getframe(1))
        leave(*code)

    def _exit(status: int) -> None:
        _leaving("os._exit", status, sys._getframe(1))
        leave_at_once(status)

    sys.excepthook, sys.exit, os._exit = excepthook, exit_, _exit  # type: ignore[assignment]
    atexit.register(_at_exit)


# --- what shows that it works
# ------------------------------------------------------------------------------------------


def _on_threading(module: Any) -> None:
    before = module.excepthook

    def excepthook(args: Any) -> None:
        if args.exc_type is not SystemExit:
            _record(
                args.exc_value, args.exc_traceback, getattr(args.thread, "name", "") or "thread"
            )
        before(args)

    module.excepthook = excepthook


def _on_optimizer(module: Any) -> None:
    torch = sys.modules["torch"]

    def witness_step(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
        # a constant to dynamo, which then traces nothing of the rest
        if torch.compiler.is_compiling():
            return
        _step()

    module.register_optimizer_step_post_hook(witness_step)


def _step() -> None:
    _saw["steps"] += 1
    now = time.monotonic()
    if _saw["steps"] <= 3 or now - _saw["told_at"] >= 1.0:
        _saw["told_at"] = now
        _tell("note", "step", says="An optimizer took a step.", optimizer_steps=_saw["steps"])


class _Yielded:
    """Replaces the iterators' `_num_yielded`: watching it adds no frame to stacks."""

    def __get__(self, iterator: Any, kind: Any = None) -> Any:
        return self if iterator is None else iterator.__dict__["_num_yielded"]

    def __set__(self, iterator: Any, count: int) -> None:
        before = iterator.__dict__.get("_num_yielded")
        iterator.__dict__["_num_yielded"] = count
        if before != count:
            _on_count(iterator, count)


@_guarded
def _on_count(iterator: Any, count: int) -> None:
    if os.getpid() != _saw["pid"]:
        return
    if count:
        _saw["batches"] += 1
        if _saw["batches"] == 1:
            _tell("note", "loader.first_batch", says="A DataLoader gave its first batch.")
        return
    _saw["loaders"] += 1
    if _saw["loaders"] <= 4 and os.environ.get("TRAINPROBE_ABLATE"):
        size = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
        _tell(
            "note",
            "loader.made",
            says="A DataLoader began.",
            workers=getattr(iterator, "_num_workers", None),
            batch_size=size,
        )
    # Only a dataset of known length: asking an iterable one (kind 1) for its length would make
    # torch warn later.
    if getattr(iterator, "_dataset_kind", None) != 0:
        return
    batches = len(iterator._index_sampler)
    if not batches:
        _saw["empty"] = True
        _tell(
            "note",
            "loader.empty",
            says="A DataLoader has no batch to give.",
            dataset_len=len(iterator._dataset),
        )
    elif _saw["loaders"] <= 4:
        _tell(
            "note",
            "loader.began",
            says="A DataLoader began.",
            loader_batches=batches,
            dataset_len=len(iterator._dataset),
        )


def _on_dataloader(module: Any) -> None:
    module._BaseDataLoaderIter._num_yielded = _Yielded()


def _on_data_parallel(module: Any) -> None:
    _sibling("_parallel").watch(module, _tell, _guarded)


def _on_c10d_logger(module: Any) -> None:
    _sibling("_collectives").journal_calls(module, _path("ring"))


def _sibling(name: str) -> Any:
    """A file of this folder, which is on no path by now."""
    from importlib.machinery import SourceFileLoader

    module = type(sys)(name)
    SourceFileLoader(name, os.path.join(_FOLDER, f"{name}.py")).exec_module(module)
    return module


_AFTER_IMPORT: dict[str, Callable[[Any], None]] = {
    "torch.distributed.c10d_logger": _on_c10d_logger,
    "threading": _on_threading,
    "torch.nn.parallel.data_parallel": _on_data_parallel,
    "torch.optim.optimizer": _on_optimizer,
    "torch.utils.data.dataloader": _on_dataloader,
    "transformers.trainer": lambda module: _sibling("_columns").watch(module, _tell, _guarded),
}


class _Finder:
    """Runs a function after a module's body has run; it finds nothing and leaves when done."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        after = _AFTER_IMPORT.pop(name, None)
        if after is None:
            return None
        others = (
            finder
            for finder in sys.meta_path
            if finder is not _Finder and hasattr(finder, "find_spec")
        )
        found = next(
            (
                spec
                for spec in (finder.find_spec(name, path, target) for finder in others)
                if spec is not None
            ),
            None,
        )
        _call_after(found, after)
        return found


@_guarded
def _call_after(spec: Any, after: Callable[[Any], None]) -> None:
    if not _AFTER_IMPORT:
        sys.meta_path.remove(_Finder)
    execute = spec.loader.exec_module

    def exec_module(module: Any) -> None:
        execute(module)
        spec.loader.__dict__.pop("exec_module", None)
        _guarded(after)(module)

    spec.loader.exec_module = exec_module


# --- start
# --------------------------------------------------------------------------------------------------


def _role() -> str:
    """`rank`, `alone` (a launcher or a single process) or `child` (of a rank, silent)."""
    command = " ".join(getattr(sys, "orig_argv", None) or sys.argv)
    if any(helper in command for helper in _HELPERS):
        return "child"
    rank, run = _rank(), os.environ.get("TORCHELASTIC_RUN_ID", "")
    if rank is None:
        return "alone"
    mark = os.environ.get(_MARK, "").split("|")
    if len(mark) == 3 and mark[0] != str(os.getpid()) and mark[1:] == [str(rank), run]:
        return "child"
    os.environ[_MARK] = f"{os.getpid()}|{rank}|{run}"
    return "rank"


@_guarded
def _let_others_look() -> None:
    with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
        if file.read(1) != "1":
            return
    import ctypes

    # PR_SET_PTRACER, PR_SET_PTRACER_ANY
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


@_guarded
def _arm() -> None:
    import faulthandler

    if not faulthandler.is_enabled():  # else the user has configured it
        faulthandler.enable()


@_guarded
def _start() -> None:
    _saw["role"] = _role()
    if _saw["role"] == "child":
        return
    numbers = {
        name.lower(): int(os.environ[name])
        for name in ("WORLD_SIZE", "LOCAL_RANK")
        if os.environ.get(name, "").isdecimal()
    }
    _tell(
        "note",
        "start",
        says="Python started.",
        role=_saw["role"],
        argv=list(getattr(sys, "orig_argv", sys.argv)),
        **{"world_size": None, "local_rank": None, **numbers},
    )
    _watch_the_end()
    if os.environ.get("TRAINPROBE_KNOB") or os.environ.get("TRAINPROBE_ABLATE"):
        _guarded(_turn_a_knob)()
    for name in [name for name in _AFTER_IMPORT if name in sys.modules]:
        _guarded(_AFTER_IMPORT.pop(name))(sys.modules[name])
    sys.meta_path.insert(0, _Finder)


def _turn_a_knob() -> None:
    _sibling("_knobs").turn(os.environ.get("TRAINPROBE_KNOB", ""), _tell, _AFTER_IMPORT, _guarded)


def _run_the_next() -> None:
    """Run the sitecustomize that this one hides; its errors are its own."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _FOLDER]
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, spec.loader
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _DIR:
    _let_others_look()
    _arm()
    _start()
_run_the_next()
