"""The other end of a send or receive, read from the line of the user's source that calls it."""

from __future__ import annotations

import ast
import re

from trainprobe.facts.collectives import POINT_TO_POINT

P2P_OPS = POINT_TO_POINT - {"coalesced"}  # what a program calls
TEXT_CAP = 500
NUMBER_CAP = 10**9


def peer_in(text: str, rank: int, world_size: int, op: str = "") -> int | None:
    """The rank that `dist.recv(x, src=rank - 1)` names; None where the line does not tell. `rank`
    and `world_size` are the caller's.

    Where `op` is given, only calls of that operation count: a line may hold several, and its text
    only the first.
    """
    found = [
        (call, name)
        for call in _calls(text)
        if (name := _called(call)) in P2P_OPS or name == "P2POp"
    ]
    for call, name in found:
        if op and name != "P2POp" and name.removeprefix("i") != op.removeprefix("i"):
            continue
        named = [
            keyword.value
            for keyword in call.keywords
            if keyword.arg in ("src", "dst", "peer", "group_src", "group_dst")
        ]
        place = 2 if name == "P2POp" else 1
        given = named or [
            value for value in call.args[place : place + 1] if not isinstance(value, ast.Starred)
        ]
        for value in given:
            peer = _number(value, rank, world_size)
            if peer is not None and 0 <= peer < max(world_size, 1) and peer != rank:
                return peer
    return None


def _called(call: ast.Call) -> str:
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def _calls(text: str) -> list[ast.Call]:
    cut = text.strip()[:TEXT_CAP]
    branch = re.sub(r"^elif\b", "if", re.sub(r"^(?:else|try|finally)\s*:\s*", "", cut))
    for attempt in (cut, f"{cut} pass", branch, re.sub(r"^(?:return|await|yield)\s+", "", cut)):
        try:
            return [node for node in ast.walk(ast.parse(attempt)) if isinstance(node, ast.Call)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return []


def _number(node: ast.expr, rank: int, world_size: int) -> int | None:
    """The value of a small sum of numbers, the rank and the world's size; by the usual names of
    these two.
    """
    if isinstance(node, ast.Constant):
        return (
            node.value
            if isinstance(node.value, int)
            and not isinstance(node.value, bool)
            and abs(node.value) < NUMBER_CAP
            else None
        )
    name = _name(node)
    if name:
        if name in ("rank", "get_rank", "my_rank", "global_rank", "stage", "local_rank", "me", "r"):
            return rank
        return (
            world_size
            if name
            in (
                "world_size",
                "world",
                "get_world_size",
                "size",
                "nproc",
                "n_ranks",
                "num_stages",
                "ws",
                "w",
            )
            else None
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, rank, world_size)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, rank, world_size), _number(node.right, rank, world_size)
        return None if left is None or right is None else _applied(node.op, left, right)
    return None


def _applied(operator: ast.operator, left: int, right: int) -> int | None:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mod) and right:
        return left % right
    if isinstance(operator, ast.BitXor) and left >= 0 and right >= 0:
        return left ^ right
    return None


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
