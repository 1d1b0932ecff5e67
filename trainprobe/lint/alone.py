"""Conditions that say that there are no other ranks."""

from __future__ import annotations

import ast
import re

from trainprobe.lint import ranks
from trainprobe.lint.conditions import Stated, stated_ahead, stated_around
from trainprobe.lint.modules import Module, last_name
from trainprobe.lint.program import Program

ONE = {(ast.LtE, 1), (ast.Eq, 1), (ast.Lt, 2)}
MORE = {(ast.Gt, 1), (ast.NotEq, 1), (ast.GtE, 2)}
NO_RANK = {(ast.Eq, -1), (ast.Lt, 0)}
A_RANK = {(ast.NotEq, -1), (ast.GtE, 0), (ast.Gt, -1)}
SIZE = re.compile(r"(get_)?world_size|num_processes|n_?gpus?|num_gpus|nprocs")
JOINED = re.compile(r"is_initialized\(\)$|(\.|^)(is_)?distributed$|(\.|^)(is_|use_)?ddp$")


def is_alone(program: Program, module: Module, node: ast.AST) -> bool:
    """Whether a condition around `node`, or one upon which its function is left ahead of it, says
    that there is one process: `world_size <= 1`, `local_rank == -1`.
    """
    told = [*stated_around(module, node), *stated_ahead(program, module, node)]
    return any(_says_alone(program, module, each) for each in told)


def _says_alone(program: Program, module: Module, test: Stated) -> bool:
    match test.node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) as node:
            number = program.value(module, right)
            asked = (type(operator), number) if isinstance(number, int) else None
            is_so = test.holds == (ast.unparse(node) == test.text)
            if SIZE.fullmatch(last_name(left.func if isinstance(left, ast.Call) else left)):
                return asked in (ONE if is_so else MORE)
            if asked in NO_RANK | A_RANK and ranks.kind_of(program, module, left) == "rank":
                return asked in (NO_RANK if is_so else A_RANK)
    return not test.holds and JOINED.search(test.text) is not None
