"""What the functions call that a loop calls: a loop that asks a service often does so through a
function of its own, of this file or of one that it imports.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # A module as it is named in an import, with the number of leading dots.
    Modules = Callable[[str, int], ast.Module | None]

DEPTH = 2  # functions of functions
FUNCTIONS_CAP = 12
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def dotted(node: Any) -> str:
    """`urllib.request.urlopen` of the function in a call; "" of what is no plain name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def calls_in(nodes: Sequence[Any]) -> list[str]:
    """The plain names of the functions that these statements call, each once."""
    calls = (one.func for node in nodes for one in ast.walk(node) if isinstance(one, ast.Call))
    return list(dict.fromkeys(name for call in calls if (name := dotted(call))))


def calls_below(tree: ast.Module, names: Sequence[str], modules: Modules) -> list[str]:
    """The same of the bodies of functions that go by these names in a file, and of those that they
    call, as far as their source is found.
    """
    found: dict[str, None] = {}
    wanted = [(tree, name, 0) for name in names]
    seen: set[int] = set()
    for home, name, depth in wanted:  # grows
        for where, function in _defined(home, name, modules):
            if id(function) in seen or len(seen) >= FUNCTIONS_CAP:
                continue
            seen.add(id(function))
            calls = calls_in(function.body)
            found.update(dict.fromkeys(calls))
            if depth + 1 < DEPTH:
                wanted += [(where, call, depth + 1) for call in calls]
    return list(found)


def _defined(
    tree: ast.Module, name: str, modules: Modules, *, imported: bool = False
) -> Iterator[tuple[ast.Module, Any]]:
    """The function of this name with the file that it stands in."""
    first, _, rest = name.partition(".")
    if not rest:
        yield from ((tree, one) for one in tree.body if _is(one, name))
    elif first in ("self", "cls") and "." not in rest:
        classes = (one for one in tree.body if isinstance(one, ast.ClassDef))
        yield from ((tree, one) for each in classes for one in each.body if _is(one, rest))
    if imported:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for one in node.names:
                if (one.asname or one.name) != first:
                    continue
                if not rest and (home := modules(node.module or "", node.level)) is not None:
                    yield from _defined(home, one.name, modules, imported=True)
                module = f"{node.module}.{one.name}" if node.module else one.name
                if rest and (home := modules(module, node.level)) is not None:
                    yield from _defined(home, rest, modules, imported=True)
        elif isinstance(node, ast.Import):
            for one in node.names:
                way = one.asname or one.name
                if rest and name.startswith(f"{way}.") and (home := modules(one.name, 0)):
                    yield from _defined(home, name[len(way) + 1 :], modules, imported=True)


def _is(node: Any, name: str) -> bool:
    return isinstance(node, _FUNCTIONS) and node.name == name
