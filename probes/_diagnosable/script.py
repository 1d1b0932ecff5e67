"""Reads time-outs and error files out of the script. It is read as text and never executed."""

from __future__ import annotations

import ast
from typing import Dict, NamedTuple, Optional

UNITS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "milliseconds": 0.001,
    "weeks": 604800.0,
    "microseconds": 1e-6,
}
POSITIONS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
CAP = 2**20


class ScriptFacts(NamedTuple):
    """`timeout_s` of init_process_group where it is a plain timedelta; `records`: uses @record."""

    timeout_s: Optional[float]
    records: bool


def read(path: str) -> Optional[ScriptFacts]:
    """None where there is no such script, or it is no Python."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            tree = ast.parse(file.read(CAP))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    timeout_s, records = None, False
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            records |= any(
                "record" in (getattr(item, "id", ""), getattr(item, "attr", ""))
                for item in node.decorator_list
            )
        if isinstance(node, ast.Call) and "init_process_group" in (
            getattr(node.func, "id", ""),
            getattr(node.func, "attr", ""),
        ):
            timeout = next(
                (keyword.value for keyword in node.keywords if keyword.arg == "timeout"), None
            )
            timeout_s = seconds(timeout) if timeout is not None else timeout_s
    return ScriptFacts(timeout_s, records)


def seconds(node: ast.AST) -> Optional[float]:
    """`timedelta(minutes=5)` in seconds; None for what is computed."""
    if not isinstance(node, ast.Call) or "timedelta" not in (
        getattr(node.func, "id", ""),
        getattr(node.func, "attr", ""),
    ):
        return None
    parts: Dict[str, ast.AST] = {
        **dict(zip(POSITIONS, node.args)),
        **{keyword.arg: keyword.value for keyword in node.keywords if keyword.arg},
    }
    total = 0.0
    for name, value in parts.items():
        if (
            name not in UNITS
            or not isinstance(value, ast.Constant)
            or not isinstance(value.value, (int, float))
        ):
            return None
        total += UNITS[name] * value.value
    return total
