"""The program that `sbatch_script.py` runs: look at paths one after the other, and print a line for
each, so that one that hangs has a name.

Input: one JSON object {"paths": [[path, "read" or "write"]], "programs": {name: path}, "files":
{name: path}}. Output: a line `{"at": path}` before each look and `{"path": path, "state":
"file|folder|missing|denied"}` after it; for a file `{"file": name, "text": …}`, for a program
`{"program": name, "says": {...}}`. Python ≥ 3.9, standard library only.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import stat
import sys
from typing import Any, Dict, List

SOURCE_CAP_BYTES = 2**20
FILE_CAP_CHARS = 2**16
_INITS = ("init_process_group", "init_distributed", "init_device_mesh")
_SUBMITS = ("submitit", "ray.init", "LocalCluster", "SLURMCluster")
_FRAMEWORKS = tuple(
    """
    lightning pytorch_lightning accelerate deepspeed transformers composer mpi4py horovod
    """.split()
)


def state_of(path: str, how: str) -> str:
    """What stands at a path, and whether we may use it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return "denied" if error.errno in (errno.EACCES, errno.EPERM) else "missing"
    folder = stat.S_ISDIR(mode)
    wanted = os.W_OK | os.X_OK if how == "write" else os.R_OK | (os.X_OK if folder else 0)
    if not os.access(path, wanted):
        return "denied"
    return "folder" if folder else "file"


def program_says(path: str) -> Dict[str, Any]:
    """What a script says of its loaders, process group, spawns and SLURM variables."""
    with open(path, "rb") as file:
        text = file.read(SOURCE_CAP_BYTES).decode("utf-8", "replace")
    tree = ast.parse(text)
    imported = {name for node in ast.walk(tree) for name in _imports(node)}
    framework = bool(imported & set(_FRAMEWORKS))
    return {
        "workers": max([number for node in ast.walk(tree) for number in _workers(node)], default=0),
        "inits": any(name in text for name in _INITS) and not framework,
        "own_meeting": _names_meeting(tree),
        "reads_slurm": "SLURM_" in text or framework or any(name in text for name in _SUBMITS),
        "spawns": (
            (
                any(
                    name in text
                    for name in (
                        "mp.spawn",
                        "multiprocessing.spawn",
                        "start_processes",
                        "DataParallel(",
                    )
                )
                and "DistributedDataParallel(" not in text
            )
            or "mp.spawn" in text
            or "multiprocessing.spawn" in text
        ),
        "submits": any(name in text for name in _SUBMITS),
        "device": "local_rank" if _by_local_rank(tree, text) else "",
        "requires": sorted(_required(tree, text)),
        "signals": "signal.signal(" in text or framework,
        "record": "@record" in text,
    }


def _by_local_rank(tree: ast.AST, text: str) -> bool:
    """Whether it takes the GPU with the number of its local rank, whatever GPUs there are."""
    if "device_count" in text:
        return False  # it may fold the number into those that it sees
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called.endswith(("set_device", "torch.device", ".cuda")) and node.args:
            given = " ".join(ast.unparse(argument) for argument in node.args)
        elif called.endswith(("DistributedDataParallel", "DDP")):
            given = " ".join(
                ast.unparse(word.value) for word in node.keywords if word.arg == "device_ids"
            )
        else:
            continue
        if re.search(r"local_?rank|localid", given, re.IGNORECASE) and "%" not in given:
            return True
    return False


def _names_meeting(tree: ast.AST) -> bool:
    """Whether the process group gets rank, size and address from the program, so that it reads no
    MASTER_ADDR: `init_process_group(init_method="tcp://…", rank=…, world_size=…)`, or a store.
    """
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and "init_process_group" in ast.unparse(node.func)):
            continue
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        address = "store" in given or re.match(
            r"f?['\"](?:tcp|file)://", given.get("init_method", "")
        )
        if address and {"rank", "world_size"} <= given.keys():
            return True
    return False


def _required(tree: ast.AST, text: str) -> set[str]:
    """The names of `os.environ["NAME"]` that is read whatever else holds, outside of any condition
    and `try`, of variables that the program does not set itself.
    """
    names: set[str] = set()
    left: List[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Try, ast.IfExp, ast.BoolOp)):
            continue
        if isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
            continue
        left += ast.iter_child_nodes(node)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
            and ast.unparse(node.value) in ("os.environ", "environ")
        ):
            names.add(node.slice.value[:100])
    sets = r"environ\[[\"']{0}[\"']\]\s*=[^=]|setdefault\([\"']{0}"
    return {name for name in names if not re.search(sets.format(re.escape(name)), text)}


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name.partition(".")[0] for name in node.names]
    return [(node.module or "").partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def _workers(node: ast.AST) -> list[int]:
    """`num_workers=8` in a call, and the default of an argument `--num-workers`."""
    if not isinstance(node, ast.Call):
        return []
    found = [
        word.value.value
        for word in node.keywords
        if word.arg == "num_workers" and isinstance(word.value, ast.Constant)
    ]
    names = [
        arg.value
        for arg in node.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    if any(
        name.lstrip("-").replace("-", "_")
        in ("num_workers", "workers", "nworkers", "dataloader_num_workers")
        for name in names
    ):
        found += [
            word.value.value
            for word in node.keywords
            if word.arg == "default" and isinstance(word.value, ast.Constant)
        ]
    return [
        number
        for number in found
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10_000
    ]


def tell(row: Dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def main() -> None:
    asked = json.loads(sys.stdin.read())
    for path, how in asked["paths"]:
        tell({"at": path})
        tell({"path": path, "state": state_of(path, how)})
    for name, path in asked.get("files", {}).items():
        tell({"at": path})
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                tell({"file": name, "text": file.read(FILE_CAP_CHARS)})
        except OSError:
            continue
    for name, path in asked["programs"].items():
        tell({"at": path})
        try:
            tell({"program": name, "says": program_says(path)})
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue


if __name__ == "__main__":
    main()
