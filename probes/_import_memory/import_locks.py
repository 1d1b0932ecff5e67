"""Finds the imports that a script serialises over its ranks by a lock. The script is never
executed.
"""

from __future__ import annotations

import ast
import os
from typing import Dict, Iterator, List


def guarded(path: str) -> Dict[str, int]:
    """The top-level modules imported inside `with …lock…(…):` or a function decorated so, with how
    many ranks may be in at once. Modules that are also imported outside a lock are left out.
    """
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    found: Dict[str, int] = {}
    free: List[str] = []
    for slots, name in _imports(tree, 0):
        if slots:
            found[name] = max(slots, found.get(name, 0))
        else:
            free.append(name)
    return {name: slots for name, slots in found.items() if name not in free}


def neighbours(path: str) -> List[str]:
    """The neighbouring modules that the script imports at once, in order."""
    folder, found = os.path.dirname(os.path.realpath(path)), []  # type: str, List[str]
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    for node in tree.body:
        inner = node.body if isinstance(node, ast.With) else [node]
        found += [
            name
            for each in inner
            if isinstance(each, (ast.Import, ast.ImportFrom))
            for _, name in _imports(ast.Module([each], []), 0)
            if name
        ]
    return [
        name
        for name in dict.fromkeys(found)
        if any(
            os.path.isfile(os.path.join(folder, *end))
            for end in ((f"{name}.py",), (name, "__init__.py"))
        )
    ]


def _imports(node: ast.AST, slots: int) -> Iterator[tuple[int, str]]:
    """Every import below with the slots of the lock around it, 0 where there is none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((slots, alias.name.partition(".")[0]) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level:
            yield slots, (child.module or "").partition(".")[0]
        else:
            yield from _imports(child, _slots(child) or slots)


def _slots(node: ast.AST) -> int:
    """How many ranks the lock of this `with` or decorator lets in; 0 where it is none."""
    held: List[ast.expr] = []
    if isinstance(node, (ast.With, ast.AsyncWith)):
        held = [item.context_expr for item in node.items]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        held = node.decorator_list
    for each in held:
        called = each.func if isinstance(each, ast.Call) else each
        name = (
            called.attr
            if isinstance(called, ast.Attribute)
            else called.id
            if isinstance(called, ast.Name)
            else ""
        )
        # threading.Lock and its like keep threads apart, not ranks.
        if "lock" in name.lower() and name not in ("Lock", "RLock"):
            arguments = (
                [
                    keyword.value.value
                    for keyword in each.keywords
                    if keyword.arg == "slots" and isinstance(keyword.value, ast.Constant)
                ]
                if isinstance(each, ast.Call)
                else []
            )
            return (
                arguments[0]
                if arguments and isinstance(arguments[0], int) and arguments[0] > 0
                else 1
            )
    return 0
