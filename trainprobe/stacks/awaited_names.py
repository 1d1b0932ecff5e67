"""What a waiting line asks for: the names in it, and the path whose file it asks for.

Pure text in, text out: an expression of the job is never run. Only constants, known names, their
joins and f-strings are put together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAMES_CAP = 12
PATH_CAP = 1024
_ASKS_FOR_A_PATH = frozenset("exists isfile isdir lexists access stat is_file is_dir open".split())


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names and `self.x` in these statements or headers of blocks, in their order."""
    nodes = (node for text in texts for tree in _parsed(text) for node in ast.walk(tree))
    spelled = (_spelled(node) for node in nodes)
    return tuple(dict.fromkeys(name for name in spelled if name))[:NAMES_CAP]


def asked_path(text: str, values: Mapping[str, object]) -> str | None:
    """The path of `os.path.exists(…)` and its like in a line, by the values of its names; None
    where it has none, or one that cannot be put together. `values` maps names to Python values.
    """
    for tree in _parsed(text):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called not in _ASKS_FOR_A_PATH:
                continue
            found = _value(node.args[0], values) if node.args else None
            if found is None and isinstance(node.func, ast.Attribute):
                found = _value(node.func.value, values)  # path.exists()
            if isinstance(found, str) and 0 < len(found) <= PATH_CAP:
                return found
    return None


def _parsed(text: str) -> Sequence[ast.AST]:
    head = text.strip()
    for whole in (head, f"{head} pass", f"{head.partition(':')[0]}: pass"):
        try:
            return [ast.parse(whole)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return []


def _spelled(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}" if node.value.id == "self" else ""
    return ""


def _value(node: Any, values: Mapping[str, object]) -> object:
    """The value of an expression, None where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return values.get(_spelled(node))
    if isinstance(node, ast.JoinedStr):
        return _joined([_value(part, values) for part in node.values], "")
    if isinstance(node, ast.FormattedValue):
        plain = node.format_spec is None and node.conversion in (-1, 115)
        return _value(node.value, values) if plain else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        parts = [_value(node.left, values), _value(node.right, values)]
        texts = all(isinstance(part, str) for part in parts)
        return _joined(parts, "/" if isinstance(node.op, ast.Div) else "") if texts else None
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else _spelled(node.func)
        if last in ("join", "Path", "str", "fspath") and node.args and not node.keywords:
            return _joined([_value(part, values) for part in node.args], "/")
    return None


def _joined(parts: Sequence[object], between: str) -> str | None:
    if any(part is None for part in parts):
        return None
    return between.join(str(part) for part in parts)
