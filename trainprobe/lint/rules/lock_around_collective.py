"""A collective inside a file lock that all ranks want: holder and ranks wait for each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import SCOPES, Module
from trainprobe.lint.program import Program
from trainprobe.lint.reached import ReachedCollective, reached_by_call

RULE = Rule(
    id="lock-around-collective",
    cause="file-lock-held",
    title="a collective while a file lock is held",
    why=(
        "The rank that holds the lock waits in the collective for the others, which wait for the"
        " lock: a deadlock."
    ),
    fix=(
        "Hold the lock only around the work on the file, and call the collective after the lock is"
        " released."
    ),
    confidence=0.85,
)


LOCKS = re.compile(
    r"(filelock\.(\w+\.)*(Unix|Windows|Soft|Base|Weak)?FileLock|portalocker\.(\w+\.)*(Lock|RLock"
    r"|BoundedSemaphore)|fasteners\.(\w+\.)*InterProcessLock"
    r"|lockfile\.(\w+\.)*\w*Lock\w*|oslo_concurrency\.lockutils\.\w*lock"
    r"|datasets\.utils\.(filelock|_filelock)\.FileLock|transformers\.utils\.\w*\.FileLock)"
)


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
    if not LOCKS.fullmatch(
        program.dotted(module, node).removesuffix("()").removesuffix(".acquire")
    ):
        return _yields_inside_one(program, module, node)
    made = node
    if isinstance(node, ast.Name):
        binding = program.names.latest(module, node)
        made = binding.value if binding is not None and binding.value is not None else node
    return not any(
        ranks.kind_of(program, module, item) in {"rank", "text", "derived"}
        for item in ast.walk(made)
        if isinstance(item, ast.Name | ast.Attribute | ast.Call)
    )


def _yields_inside_one(program: Program, module: Module, node: ast.expr) -> bool:
    """Whether it calls a context manager of the project that yields inside a lock."""
    function = program.called(module, node) if isinstance(node, ast.Call) else None
    if function is None:
        return False
    blocks = [entry for entry in ast.walk(function.node) if isinstance(entry, ast.With)]
    holder = [
        block
        for block in blocks
        if any(
            LOCKS.fullmatch(program.dotted(function.module, item.context_expr).removesuffix("()"))
            for item in block.items
        )
    ]
    return any(isinstance(inner, ast.Yield) for entry in holder for inner in ast.walk(entry))


def _inside(
    program: Program, module: Module, node: ast.AST, body: list[ast.stmt]
) -> Iterator[Finding]:
    scope = module.scope_of(node)
    for statement in body:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Call) and module.scope_of(inner) is scope:
                yield from _findings(program, module, inner, getattr(node, "lineno", 0))


def _findings(program: Program, module: Module, call: ast.Call, line: int) -> Iterator[Finding]:
    bears = [
        reached
        for reached in reached_by_call(program, module, call)
        if reached.collective.sure >= 0.7
        and not (reached.collective.kind == "setup" and reached.chain)
    ]
    if not bears or any(guard.how == "inside" for guard in flow.guards(program, module, call)):
        return
    item: ReachedCollective = bears[0]
    way = " -> ".join(f"{step.name}()" for step in item.chain)
    message = (
        f"{f'{way} calls {item.collective.name}' if way else item.collective.says}, while a file"
        f" lock (line {line}) is held."
    )
    yield RULE.finding(module, call, message, confidence=0.9 * item.collective.sure)


def _acquired(program: Program, module: Module, call: ast.Call) -> ast.Call | None:
    """The releasing call of a lock that the same function takes."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in {
        "acquire",
        "flock",
        "lockf",
    }:
        return None
    flocks = call.func.attr != "acquire"
    if flocks:
        if (
            program.dotted(module, call.func) not in {"fcntl.flock", "fcntl.lockf"}
            or not call.args
            or "LOCK_UN" in module.source_of(call)
        ):
            return None
    elif not _is_lock(program, module, call.func.value):
        return None
    name = module.source_of(call.args[0] if flocks else call.func.value)
    scope = module.scope_of(call)
    for other in module.of(ast.Call):
        if (
            other.lineno <= call.lineno
            or not isinstance(other.func, ast.Attribute)
            or module.scope_of(other) is not scope
        ):
            continue
        of = (
            module.source_of(other.args[0])
            if flocks and other.args
            else module.source_of(other.func.value)
        )
        ends = (
            other.func.attr == call.func.attr and "LOCK_UN" in module.source_of(other)
            if flocks
            else other.func.attr == "release"
        )
        if (ends and of == name) or (
            flocks and other.func.attr == "close" and module.source_of(other.func.value) == name
        ):
            return other
    return None


def _between(program: Program, module: Module, begin: ast.Call, end: ast.Call) -> Iterator[Finding]:
    scope = module.scope_of(begin)
    assert isinstance(scope, SCOPES)
    for call in module.of(ast.Call):
        if (begin.lineno, begin.col_offset) < (call.lineno, call.col_offset) < (
            end.lineno,
            end.col_offset,
        ) and module.scope_of(call) is scope:
            yield from _findings(program, module, call, begin.lineno)
