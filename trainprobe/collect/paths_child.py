"""The program that `sbatch_script.py` runs: look at paths one after the other, and print a line for
each, so that one that hangs has a name.

Input: one JSON object {"paths": [[path, "read" or "write"]], "programs": {name: path}}. Output: a
line `{"at": path}` before each look and `{"path": path, "state": "file|folder|missing|denied"}`
after it; for a program `{"program": name, "says": {...}}`. Python ≥ 3.9, standard library only.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import stat
import sys
from typing import Any, Dict

SOURCE_CAP_BYTES = 2**20
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
        "record": "@record" in text,
    }


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
    for name, path in asked["programs"].items():
        tell({"at": path})
        try:
            tell({"program": name, "says": program_says(path)})
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue


if __name__ == "__main__":
    main()
