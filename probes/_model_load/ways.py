"""The ways of loading a model: as it was given, and the cheaper ones that the thing allows. Runs in
the process that loads.

A checkpoint is only ever read with weights_only=True: a folder that was downloaded must not run
code by being measured.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.util
import inspect
import json
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Set

from _shared import named_object

PICKLED = (".bin", ".pt", ".pth", ".ckpt")
MOST_NODES = 100_000


class NotThisWayError(Exception):
    """This way does not apply to what was given; the message says why."""


class Loading:
    """`load` returns the model or weights; `reads` are torch.load's: file, line, path, mmap."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self.load, self.reads = load, []  # type: ignore[var-annotated] # rows of what _watched writes


def kind_of(source: str) -> str:
    """`factory`, `folder` (with config.json), or `file` (weights or a folder of them)."""
    path = os.path.expanduser(source)
    if os.path.isdir(path):
        return "folder" if os.path.isfile(os.path.join(path, "config.json")) else "file"
    return (
        "file"
        if path.endswith((*PICKLED, ".safetensors")) and ":" not in os.path.basename(path)
        else "factory"
    )


def weight_files(source: str) -> List[str]:
    """The files of weights, safetensors first as in transformers. Raises NamedObjectError."""
    path = os.path.expanduser(source)
    if os.path.isfile(path):
        return [path]
    for ending in (".safetensors", *PICKLED):
        found = sorted(glob.glob(os.path.join(glob.escape(path), f"*{ending}")))
        weights = [
            item
            for item in found
            if os.path.basename(item)
            not in ("training_args.bin", "optimizer.pt", "scheduler.pt", "scaler.pt")
        ]
        if weights:
            return weights
    raise named_object.NamedObjectError(
        f"There are no weights in {source}."
        if os.path.isdir(path)
        else f"There is no file {source}."
    )


def prepared(way: str, source: str) -> Loading:
    """Import what the way needs. Raises NamedObjectError and NotThisWayError."""
    kind = kind_of(source)
    loading = Loading(lambda: None)
    if kind == "factory":
        loading.load = _of_factory(way, source, loading.reads)
    elif kind == "folder" and way != "weights" and _there("transformers"):
        loading.load = _of_folder(way, source)
    else:
        loading.load = _of_files(way, weight_files(source))
    return loading


def _of_factory(way: str, source: str, reads: List[Dict[str, Any]]) -> Callable[[], Any]:
    torch: Any = importlib.import_module("torch") if _there("torch") else None
    if torch is not None:
        # before the user's module is imported, which may take it by name
        torch.load = _watched(torch.load, reads, mapped=way == "mmap")
    made = named_object.load_named_object(source)
    if not callable(made) or (hasattr(made, "state_dict") and not inspect.isclass(made)):
        return lambda: made  # the module built it as it was imported
    try:
        needed = [
            item.name
            for item in inspect.signature(made).parameters.values()
            if item.default is item.empty
            and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):
        needed = []  # some callables of extensions have no signature
    if needed:
        raise named_object.NamedObjectError(
            f"{source} cannot be called without arguments: it needs {', '.join(needed)}. Name a"
            " factory that takes none."
        )
    if way == "meta":

        def on_meta() -> Any:
            with torch.device("meta"):
                return made()

        if torch is None or not hasattr(torch, "device"):
            raise NotThisWayError("there is no torch")
        return on_meta
    return lambda: _to_device(torch, made())


def _watched(
    load: Callable[..., Any], reads: List[Dict[str, Any]], *, mapped: bool
) -> Callable[..., Any]:
    """torch.load that records its callers; with `mapped` it maps files instead of reading them."""

    def watched(f: Any, *args: Any, **named: Any) -> Any:
        caller = sys._getframe(1)  # noqa: SLF001 - the public way, inspect.stack, reads every source file
        is_path = isinstance(f, (str, os.PathLike))
        reads.append(
            {
                "file": caller.f_code.co_filename,
                "line": caller.f_lineno,
                "path": str(f)[:400] if is_path else "",
                "mmap": bool(named.get("mmap")),
            }
        )
        if mapped and is_path and not named.get("mmap"):
            named["mmap"] = True
            if named.get("map_location") is None and not args:
                named["map_location"] = "cpu"
        return load(f, *args, **named)

    return watched


def _of_folder(way: str, source: str) -> Callable[[], Any]:
    """from_pretrained of the class in config.json; code of the folder is never run."""
    transformers = importlib.import_module("transformers")
    path = os.path.expanduser(source)
    with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
        names = json.load(file).get("architectures") or []
    model_class = getattr(transformers, str(names[0]), None) if names else None
    model_class = model_class or transformers.AutoModel
    old = int(str(transformers.__version__).split(".")[0]) < 5
    torch = importlib.import_module("torch")
    if way == "given":
        return lambda: _to_device(torch, model_class.from_pretrained(path, local_files_only=True))
    if way == "low_cpu_mem_usage":
        if not old:
            raise NotThisWayError(f"transformers {transformers.__version__} always loads this way")
        return lambda: model_class.from_pretrained(
            path, local_files_only=True, low_cpu_mem_usage=True
        )
    if way == "dtype":
        if not old:
            raise NotThisWayError(
                f"transformers {transformers.__version__} uses the file's type by itself"
            )
        return lambda: model_class.from_pretrained(
            path, local_files_only=True, torch_dtype="auto", low_cpu_mem_usage=True
        )
    if way != "assign":
        raise NotThisWayError("it does not apply to this source")

    def assigned() -> Any:
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
        with torch.device("meta"):
            model = (
                model_class(config)
                if model_class is not transformers.AutoModel
                else model_class.from_config(config)
            )
        for file in weight_files(path):
            model.load_state_dict(_read(file, mapped=True), strict=False, assign=True)
        return model

    return assigned


def _of_files(way: str, files: List[str]) -> Callable[[], Any]:
    torch = importlib.import_module("torch")
    if way not in ("given", "weights", "mmap"):
        raise NotThisWayError("there is no model class to build, only weights")
    if way == "mmap" and files[0].endswith(".safetensors"):
        raise NotThisWayError("safetensors are mapped anyhow")

    def read() -> Any:
        return [_to_device(torch, _read(file, mapped=way == "mmap")) for file in files]

    return read


def _read(file: str, *, mapped: bool) -> Any:
    """The tensors of one file by name, on the CPU."""
    torch = importlib.import_module("torch")
    if file.endswith(".safetensors"):
        return importlib.import_module("safetensors.torch").load_file(file)
    try:
        return torch.load(
            file, map_location="cpu", weights_only=True, **({"mmap": True} if mapped else {})
        )
    except (
        TypeError,
        RuntimeError,
    ) as error:  # an old torch knows no mmap, and an old file cannot be mapped
        if mapped:
            raise NotThisWayError(str(error)[:200]) from error
        raise


def _to_device(torch: Any, loaded: Any) -> Any:
    """Move a module to this rank's GPU where the run uses GPUs; return anything else as it is."""
    if (
        os.environ.get("TRAINPROBE_DEVICE") != "cuda"
        or torch is None
        or not torch.cuda.is_available()
        or not hasattr(loaded, "to")
    ):
        return loaded
    return loaded.to(f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}")


def tensors_in(loaded: Any) -> Iterator[Any]:
    """All tensors of a model or of nested lists, tuples, dicts and plain attributes."""
    queue: List[Any] = [loaded]
    reads: Set[int] = set()
    while queue and len(reads) < MOST_NODES:
        item = queue.pop()
        if id(item) in reads:
            continue
        reads.add(id(item))
        if hasattr(item, "untyped_storage") and hasattr(item, "element_size"):
            yield item
        elif callable(getattr(item, "parameters", None)) and callable(
            getattr(item, "buffers", None)
        ):
            queue += [*item.parameters(), *item.buffers()]
        elif isinstance(item, dict):
            queue += list(item.values())
        elif isinstance(item, (list, tuple)):
            queue += list(item)
        elif (
            hasattr(item, "__dict__")
            and not inspect.isclass(item)
            and not inspect.isroutine(item)
            and not inspect.ismodule(item)
        ):
            queue += [each for each in vars(item).values() if hasattr(each, "parameters")]


def counted(loaded: Any) -> Dict[str, int]:
    """Count tensors and bytes. Read one byte of every page, so that mapped weights are loaded."""
    tensors = read = total = 0
    for item in tensors_in(loaded):
        tensors += 1
        total += item.numel() * item.element_size()
        if item.device.type == "cpu" and item.is_contiguous() and item.numel():
            # an odd type or layout, which is then only not read
            with contextlib.suppress(RuntimeError):
                read += (
                    int(item.detach().view(-1).view(sys.modules["torch"].uint8)[::4096].sum()) & 1
                )
    return {"tensors": tensors, "tensor_bytes": total, "read": read}


def shown(loaded: Any) -> str:
    """`None`, `the int 7`, `a list of 3`: what came back instead of a model."""
    if loaded is None:
        return "None"
    if isinstance(loaded, (int, float, str, bytes)):
        return f"the {type(loaded).__name__} {loaded!r:.60}"
    size = f" of {len(loaded)}" if isinstance(loaded, (list, tuple, dict, set)) else ""
    return f"a {type(loaded).__name__}{size}"


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
