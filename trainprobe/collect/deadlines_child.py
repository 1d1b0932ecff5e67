"""The program that `deadlines.py` runs: read timeouts in the job's scripts and list its newest
checkpoints. It may hang on a dead mount, and is then killed.

Input: one JSON object {scripts, folders, cwd, root, began, seconds}; names are the job's own, below
`root` (empty: our root). Output: one JSON line per script and per folder, so that what was found
first is not lost.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

SCRIPT_CAP_BYTES = 2 * 2**20
ENTRIES_CAP = 2000
DEPTH = 3
NEWEST = 8
CALLS = tuple(
    """
    init_process_group new_group InitProcessGroupKwargs init_distributed DDPStrategy
    FSDPStrategy DeepSpeedStrategy TrainingArguments
    """.split()
)
KEYWORDS = ("timeout", "ddp_timeout")
UNITS = {
    "weeks": 604800.0,
    "days": 86400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 1e-3,
    "microseconds": 1e-6,
}
FOLDER_NAME = re.compile(
    r"(output|save|ckpt|checkpoint|default_root|work)_?(dir|path|folder|root)?$|^(out|log)_?dir$"
)
SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".distcp")
SPEAKING = re.compile(r"ckpt|checkpoint|epoch|step|iter|last|best|resume", re.IGNORECASE)
GROUPED = re.compile(
    r"^(checkpoint|global_?step|step|epoch|iter)[-_=]?\d+$|\.ckpt$|^ckpt[-_]?\d+$", re.IGNORECASE
)
SKIPPED = set(
    """
    node_modules __pycache__ site-packages venv env wandb proc sys dev
    """.split()
)


def main() -> None:
    asked = json.loads(sys.stdin.read())
    ends = time.monotonic() + float(asked["seconds"])
    folders, root = list(asked["folders"]), str(asked.get("root", ""))
    for script in asked["scripts"]:
        found = read_script(root + os.path.join(asked["cwd"], script))
        tell({"script": script, **found})
        folders += found["folders"]
    visited: List[str] = []
    for name in folders:
        folder = os.path.normpath(os.path.join(asked["cwd"], name))
        if folder not in visited and time.monotonic() < ends and len(visited) < 12:
            visited.append(folder)
            found = newest(root + folder, asked.get("began"), ends)
            for row in found["checkpoints"]:
                row["path"] = row["path"][len(root) :]
            tell({"folder": folder, **found})


def tell(row: Dict[str, Any]) -> None:
    os.write(1, (json.dumps(row) + "\n").encode())


def read_script(path: str) -> Dict[str, Any]:
    """{timeouts: [{call, line, seconds|null}], folders: [name], flaw}."""
    found: Dict[str, Any] = {"timeouts": [], "folders": [], "flaw": ""}
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            tree = ast.parse(file.read(SCRIPT_CAP_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        found["flaw"] = f"{type(error).__name__}: {error}"[:200]
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else ""
            )
            keywords = {word.arg: word.value for word in node.keywords if word.arg}
            if called in CALLS:
                value = next((keywords[name] for name in KEYWORDS if name in keywords), None)
                if value is not None or called == "init_process_group":
                    found["timeouts"].append(
                        {
                            "call": called,
                            "line": node.lineno,
                            "given": value is not None,
                            "seconds": seconds_of(value),
                        }
                    )
            if called == "save" and len(node.args) > 1:
                found["folders"] += [
                    os.path.dirname(text) or "." for text in texts_of(node.args[1])
                ]
            found["folders"] += [
                text
                for name, value in keywords.items()
                if FOLDER_NAME.search(name)
                for text in texts_of(value)
            ]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if any(FOLDER_NAME.search(name.lower()) for name in names):
                found["folders"] += texts_of(node.value)
    found["folders"] = [name for name in dict.fromkeys(found["folders"]) if name][:10]
    return found


def seconds_of(node: Optional[ast.AST]) -> Optional[float]:
    """`timedelta(minutes=20)`, `timedelta(0, 60)`, or a plain number of seconds."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "timedelta":
        parts = [(UNITS[name], value) for name, value in zip(("days", "seconds"), node.args)]
        parts += [(UNITS.get(word.arg or "", 0.0), word.value) for word in node.keywords]
        numbers = [(unit, number_of(value)) for unit, value in parts]
        return (
            None
            if any(number is None or not unit for unit, number in numbers)
            else sum(unit * (number or 0.0) for unit, number in numbers)
        )
    return number_of(node)


def number_of(node: Optional[ast.AST]) -> Optional[float]:
    """A number or a product, quotient, sum or difference of numbers."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
    ):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        left, right = number_of(node.left), number_of(node.right)
        if left is not None and right is not None:
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return left + right if isinstance(node.op, ast.Add) else left - right
            if isinstance(node.op, (ast.Div, ast.FloorDiv)) and right:
                return left / right
    return None


def texts_of(node: ast.AST) -> List[str]:
    """A text, or the folders in front of the first blank of an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        return [(os.path.dirname(str(node.values[0].value)) or ".") + "/"]
    return []


def newest(folder: str, began: Optional[float], ends: float) -> Dict[str, Any]:
    """{checkpoints: [{path, bytes, modified_at}], entries, cut}, the newest first."""
    found: Dict[str, List[Any]] = {}
    entries, cut = 0, False
    for path, name, size, modified_at in files_below(folder):
        entries += 1
        if entries > ENTRIES_CAP or time.monotonic() > ends:
            cut = True
            break
        inside = os.path.relpath(path, folder).split(os.sep)[:-1]
        group = next((place for place, part in enumerate(inside) if GROUPED.search(part)), None)
        if group is None and not name.endswith(SUFFIXES):
            continue
        # A file from before the job is a checkpoint only if its name says so: data and weights that
        # were downloaded have these endings too.
        if (
            group is None
            and began is not None
            and modified_at < began
            and not SPEAKING.search(name)
        ):
            continue
        key = path if group is None else os.path.join(folder, *inside[: group + 1])
        known = found.setdefault(key, [0, 0.0])
        known[0] += size
        known[1] = max(known[1], modified_at)
    rows = [{"path": path, "bytes": size, "modified_at": at} for path, (size, at) in found.items()]
    return {
        "checkpoints": sorted(rows, key=lambda row: -row["modified_at"])[:NEWEST],
        "entries": entries,
        "cut": cut,
    }


def files_below(folder: str) -> Iterator[Tuple[str, str, int, float]]:
    """(path, name, bytes, modified_at) of each file, the shallow ones first."""
    level = [folder]
    for _ in range(DEPTH + 1):
        deeper: List[str] = []
        for place in level:
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in SKIPPED and not entry.name.startswith("."):
                                deeper.append(entry.path)
                        elif entry.is_file(follow_symlinks=False):
                            status = entry.stat(follow_symlinks=False)
                            yield entry.path, entry.name, status.st_size, status.st_mtime
            except OSError:
                continue
        level = deeper


if __name__ == "__main__":
    main()
