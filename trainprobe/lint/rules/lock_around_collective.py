"""A collective inside a file lock that all ranks want: the holder waits for ranks that wait for the lock."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import Borne, borne_by_call
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import SCOPES, Module
from trainprobe.lint.program import Program

ID = "lock-around-collective"
CAUSE = "file-lock-held"
WHY = "The rank that holds the lock waits in the collective for the others, and they wait for the lock: nobody can go on."
LOCKS = re.compile(
    r"(filelock\.(\w+\.)*(Unix|Windows|Soft|Base|Weak)?FileLock|portalocker\.(\w+\.)*(Lock|RLock|BoundedSemaphore)|fasteners\.(\w+\.)*InterProcessLock"
    r"|lockfile\.(\w+\.)*\w*Lock\w*|oslo_concurrency\.lockutils\.\w*lock|datasets\.utils\.(filelock|_filelock)\.FileLock|transformers\.utils\.\w*\.FileLock)"
)
DO = "Hold the lock only around the work on the file, and call the collective after the lock is released."


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per call that leads to a collective while a file lock is held."""
    for module in program.examined:
        if "lock" not in module.text.lower():
            continue
        blocks: list[ast.With | ast.AsyncWith] = [*module.of(ast.With), *module.of(ast.AsyncWith)]
        for node in blocks:
            for item in node.items:
                if _is_lock(program, module, item.context_expr):
                    yield from _inside(program, module, node, node.body)
        for call in module.of(ast.Call):
            end = _acquired(program, module, call)
            if end is not None:
                yield from _between(program, module, call, end)


def _is_lock(program: Program, module: Module, node: ast.expr) -> bool:
    if not LOCKS.fullmatch(program.dotted(module, node).removesuffix("()").removesuffix(".acquire")):
        return _yields_inside_one(program, module, node)
    made = node
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        made = binding.value if binding is not None and binding.value is not None else node
    return not any(ranks.kind_of(program, module, one) in {"rank", "derived"} for one in ast.walk(made) if isinstance(one, ast.Name | ast.Attribute | ast.Call))


def _yields_inside_one(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether it calls a context manager of the project that yields inside a lock."""
    function = program.called(module, node) if isinstance(node, ast.Call) else None
    if function is None:
        return False
    blocks = [one for one in ast.walk(function.node) if isinstance(one, ast.With)]
    held = [one for one in blocks if any(LOCKS.fullmatch(program.dotted(function.module, item.context_expr).removesuffix("()")) for item in one.items)]
    return any(isinstance(inner, ast.Yield) for one in held for inner in ast.walk(one))


def _inside(program: Program, module: Module, node: ast.AST, body: list[ast.stmt]) -> Iterator[Finding]:
    scope = module.scope_of(node)
    for statement in body:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Call) and module.scope_of(inner) is scope:
                yield from _told(program, module, inner, getattr(node, "lineno", 0))


def _told(program: Program, module: Module, call: ast.Call, line: int) -> Iterator[Finding]:
    bears = [one for one in borne_by_call(program, module, call) if one.collective.sure >= 0.7 and not (one.collective.kind == "setup" and one.chain)]
    if not bears or any(guard.how == "inside" for guard in flow.guards(program, module, call)):
        return
    one: Borne = bears[0]
    way = " -> ".join(f"{step.name}()" for step in one.chain)
    says = f"{f'{way} comes to {one.collective.name}' if way else one.collective.says}, while a file lock (line {line}) is held."
    yield program.finding(ID, CAUSE, module, call, says=says, why=WHY, confidence=0.9 * one.collective.sure, fix=Fix(DO))


def _acquired(program: Program, module: Module, call: ast.Call) -> ast.Call | None:
    """The call that gives back a lock taken by `lock.acquire()` or `fcntl.flock(file, LOCK_EX)` in the same function."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"acquire", "flock", "lockf"}:
        return None
    flocks = call.func.attr != "acquire"
    if flocks:
        if program.dotted(module, call.func) not in {"fcntl.flock", "fcntl.lockf"} or not call.args or "LOCK_UN" in module.source_of(call):
            return None
    elif not _is_lock(program, module, call.func.value):
        return None
    name = module.source_of(call.args[0] if flocks else call.func.value)
    scope = module.scope_of(call)
    for other in module.of(ast.Call):
        if other.lineno <= call.lineno or not isinstance(other.func, ast.Attribute) or module.scope_of(other) is not scope:
            continue
        of = module.source_of(other.args[0]) if flocks and other.args else module.source_of(other.func.value)
        ends = other.func.attr == call.func.attr and "LOCK_UN" in module.source_of(other) if flocks else other.func.attr == "release"
        if (ends and of == name) or (flocks and other.func.attr == "close" and module.source_of(other.func.value) == name):
            return other
    return None


def _between(program: Program, module: Module, begin: ast.Call, end: ast.Call) -> Iterator[Finding]:
    scope = module.scope_of(begin)
    assert isinstance(scope, SCOPES)
    for call in module.of(ast.Call):
        if (begin.lineno, begin.col_offset) < (call.lineno, call.col_offset) < (end.lineno, end.col_offset) and module.scope_of(call) is scope:
            yield from _told(program, module, call, begin.lineno)


RULE = Rule(ID, CAUSE, "a collective while a file lock is held", WHY, 0.85, find)
