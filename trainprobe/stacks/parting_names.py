"""Which names of a function tell where its loops and conditions have brought a rank: the targets
and bounds of the loops around its line, and what the conditions around and above it ask.

Ranks that stand in one function at different lines, or at one line in different passes, are
compared by their values. Of torch's own functions the arguments tell with whom a call is made.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import is_user

NAMES_CAP = 24  # of one function
FUNCTIONS_CAP = 6  # the innermost ones in which several ranks stand
Function = tuple[str, str]  # file and name
_TORCHS = "torch/distributed/distributed_c10d.py"
# Arguments that are ranks of the world, from torch 2.4 to 2.13.
OTHER_END = {"send": "dst", "isend": "dst", "recv": "src", "irecv": "src"}
ROOT = {
    "broadcast": "src",
    "broadcast_object_list": "src",
    "scatter": "src",
    "scatter_object_list": "src",
    "reduce": "dst",
    "gather": "dst",
    "gather_object": "dst",
}


def shared_functions(stacks: Iterable[Sequence[Frame]]) -> list[Function]:
    """The user's functions in which at least two of the stacks stand, the innermost first."""
    depths: dict[Function, list[int]] = defaultdict(list)
    for frames in stacks:
        inner: dict[Function, int] = {}
        for depth, frame in enumerate(frames):
            if is_user(frame) and frame.name != "<module>":
                inner[frame.file, frame.name] = depth
        for function, depth in inner.items():
            depths[function].append(depth)
    shared = [function for function, found in depths.items() if len(found) > 1]
    return sorted(shared, key=lambda function: -max(depths[function]))[:FUNCTIONS_CAP]


def names_that_tell(
    stacks: Sequence[Sequence[Frame]], sites: Mapping[tuple[str, int], Mapping[str, Any]]
) -> dict[Function, tuple[str, ...]]:
    """The names to compare, by function. `sites` are lines whose source was read, as records."""
    found: dict[Function, dict[str, None]] = {function: {} for function in shared_functions(stacks)}
    for frames in stacks:
        for frame in frames:
            names, site = found.get((frame.file, frame.name)), sites.get((frame.file, frame.line))
            if names is None or site is None:
                continue
            for part in (*(site.get("blocks") or ()), *(site.get("skips") or ())):
                names.update(dict.fromkeys(names_of_header(str(part.get("text") or ""))))
    return {function: tuple(names)[:NAMES_CAP] for function, names in found.items() if names}


def arguments_of_calls(stacks: Iterable[Sequence[Frame]]) -> dict[Function, tuple[str, ...]]:
    """The arguments that name another rank, by torch's function in which one of these stacks is."""
    return {
        (frame.file, frame.name): (argument,)
        for frames in stacks
        for frame in frames
        if frame.file.endswith(_TORCHS)
        and (argument := OTHER_END.get(frame.name) or ROOT.get(frame.name)) is not None
    }


def names_of_header(header: str) -> tuple[str, ...]:
    """The plain names in `for i, x in enumerate(rows):`, `while left > 0:` or `if stop:`, without
    those that are called; none of another header.
    """
    tree = _parsed(header)
    if tree is None:
        return ()
    nodes = [node for part in _asked(tree) for node in ast.walk(part)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return tuple(
        dict.fromkeys(
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and id(node) not in called and node.id != "self"
        )
    )


def targets_of(header: str) -> tuple[str, ...]:
    """The names that a `for` loop counts or walks with."""
    tree = _parsed(header)
    if not isinstance(tree, (ast.For, ast.AsyncFor)):
        return ()
    return tuple(node.id for node in ast.walk(tree.target) if isinstance(node, ast.Name))


def counts(header: str) -> tuple[str, ...]:
    """The names that count the passes of a loop: over a range, the first of enumerate, or what a
    `while` compares (`while step < last:`).
    """
    tree = _parsed(header)
    if isinstance(tree, ast.While):
        compared = [one for one in ast.walk(tree.test) if isinstance(one, ast.Compare)]
        return tuple(one.left.id for one in compared if isinstance(one.left, ast.Name))
    if not isinstance(tree, (ast.For, ast.AsyncFor)):
        return ()
    made = [
        node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for node in ast.walk(tree.iter)
        if isinstance(node, ast.Call)
    ]
    target = tree.target
    if "enumerate" in made:
        target = target.elts[0] if isinstance(target, (ast.Tuple, ast.List)) else target
    elif not {"range", "trange", "count"} & set(made):
        return ()
    return (target.id,) if isinstance(target, ast.Name) else ()


def first_of(header: str) -> tuple[str, ...]:
    """The names in the first number of a `for` over a range that does not begin at 0."""
    tree = _parsed(header)
    return tuple(
        name.id
        for node in (ast.walk(tree.iter) if isinstance(tree, (ast.For, ast.AsyncFor)) else ())
        if isinstance(node, ast.Call) and len(node.args) > 1
        if isinstance(node.func, ast.Name) and node.func.id in ("range", "trange")
        for name in ast.walk(node.args[0])
        if isinstance(name, ast.Name)
    )


def _asked(tree: ast.stmt) -> tuple[ast.AST, ...]:
    if isinstance(tree, (ast.For, ast.AsyncFor)):
        return (tree.target, tree.iter)
    return (tree.test,) if isinstance(tree, (ast.While, ast.If)) else ()


def _parsed(header: str) -> Any:
    head = header.strip()
    head = head[2:] if head.startswith("elif ") else head
    if not head.startswith(("for ", "async for ", "while ", "if ")) or "\n" in head:
        return None
    try:
        head = head.removeprefix("async ")
        return ast.parse(f"{head.rstrip(':')}: pass").body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        return None
