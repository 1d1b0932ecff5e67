"""Where autograd is off, as in evaluation."""

from __future__ import annotations

import ast
import re

from trainprobe.lint.calls import callers
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

OFF = re.compile(r"torch\.(autograd\.(grad_mode\.)?)?(no_grad|inference_mode)(\(\))?")
DEEPEST = 4


def is_without_gradients(program: Program, module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether `no_grad` or `inference_mode` stands around a node, over its function, or around all
    that calls it.
    """
    around = [
        item.context_expr
        for up in module.ancestors(node)
        if isinstance(up, ast.With)
        for item in up.items
    ]
    holder = module.function_of(node)
    around += holder.node.decorator_list if holder is not None else []
    if any(OFF.fullmatch(program.dotted(module, each)) for each in around):
        return True
    sites = callers(program, holder) if holder is not None and depth < DEEPEST else []
    return bool(sites) and all(
        is_without_gradients(program, site.module, site.node, depth + 1) for site in sites
    )
