"""`torch.save` by every rank to one path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import calls_of, given_for
from trainprobe.lint.fixing import replace
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

ID = "save-by-all-ranks"
CAUSE = "checkpoint-corrupt"
WHY = "Ranks that write one file at the same time overwrite each other; what is left may be cut or mixed, and is found out when the run resumes."
DISTRIBUTED = re.compile(
    r"\binit_process_group\b|\bDistributedDataParallel\b|\bAccelerator\(|\bFullyShardedDataParallel\b|\bfully_shard\b|\bdeepspeed\.initialize\b|\bhvd\.init\b"
)
ONE_FILE_EACH = re.compile(r"rank|process_index|proc_id|uuid|getpid|hostname|mkdtemp|mkstemp|tmp|temp|BytesIO|buffer", re.IGNORECASE)
DEEPEST = 6


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per save that all ranks come to, as far back as the program shows its callers."""
    for module in program.modules.values():
        if "save" not in module.text:
            continue
        for call in module.of(ast.Call):
            if program.dotted(module, call.func) != "torch.save":
                continue
            path = argument(call, "f", 1)
            holder = module.function_of(call)
            if path is None or _of_each_rank(program, module, path, holder, 0):
                continue
            started = _all_come(program, module, call, holder, 0)
            if started is None:
                continue
            where = module.source_of(path)
            says = f"Every rank saves to the same path, {where}: no condition lets only one rank come here."
            yield program.finding(ID, CAUSE, module, call, says=says, why=WHY, confidence=0.75, fix=_fix(module, call, holder, started))


def _all_come(program: Program, module: Module, node: ast.Call, holder: Function | None, depth: int) -> Module | None:
    """The module from which a distributed program brings all ranks to `node`; None where one rank alone may come, or the callers are not seen."""
    if depth > DEEPEST or flow.guards(program, module, node) or _asks_the_rank(module, node):
        return None
    if holder is None:
        return module if DISTRIBUTED.search(module.text) else None
    calls = calls_of(program).get(holder, [])
    for where, call in calls:
        if call is not node and (caller := where.function_of(call)) is not holder and (found := _all_come(program, where, call, caller, depth + 1)):
            return found
    if calls or not _is_started(program, module, holder):
        return None
    return module if DISTRIBUTED.search(module.text) else None


def _is_started(program: Program, module: Module, holder: Function) -> bool:
    """Whether a function that nobody calls is handed to something that starts ranks, as `mp.spawn(worker, …)` does."""
    for call in module.of(ast.Call):
        name = program.dotted(module, call.func)
        if name.endswith((".spawn", ".start_processes", ".Process", "notebook_launcher", ".launch")):
            given = [*call.args[:1], *(word.value for word in call.keywords if word.arg in {"fn", "target", "function"})]
            if any(program.function(program.dotted(module, one)) is holder for one in given):
                return True
    return False


def _asks_the_rank(module: Module, node: ast.AST) -> bool:
    """A condition around that speaks of ranks in words that are not understood is taken to be the right one."""
    for up in module.ancestors(node):
        if isinstance(up, ast.If) and re.search(r"rank|main|master|primary|is_zero|world|save|process", module.source_of(up.test, 200), re.IGNORECASE):
            return True
    return False


def _of_each_rank(program: Program, module: Module, path: ast.expr, holder: Function | None, depth: int) -> bool:
    """Whether a path may differ from rank to rank, or is no file at all."""
    if depth > DEEPEST:
        return True
    if ONE_FILE_EACH.search(module.source_of(path, 300)):
        return True
    for one in ast.walk(path):
        if isinstance(one, ast.Name):
            for binding in program.names.bindings(module, one)[:6]:
                if binding.kind == "param" and holder is not None and one.id in holder.parameters:
                    for where, call in calls_of(program).get(holder, [])[:6]:
                        given = given_for(call, holder, one.id)
                        if given is not None and _of_each_rank(program, where, given, where.function_of(call), depth + 1):
                            return True
                elif binding.value is not None and binding.value is not path and _of_each_rank(program, module, binding.value, holder, depth + 1):
                    return True
        elif isinstance(one, ast.Attribute) and ranks.kind_of(program, module, one):
            return True
    return False


def _fix(module: Module, call: ast.Call, holder: Function | None, started: Module) -> Fix:
    """Put the save under a rank condition where one can be written with what the function already has."""
    statement = module.parents.get(call)
    says = "Save on the main rank alone, then call a barrier on all ranks. Under FSDP call state_dict() on all ranks first."
    if (
        module is not started
        or module.is_notebook
        or not isinstance(statement, ast.Expr)
        or statement.lineno != statement.end_lineno
        or re.search(r"FullySharded|fully_shard|deepspeed", module.text)
    ):
        return Fix(says)
    names = holder.node.body if holder is not None else module.tree.body
    held = {target.id for one in names if isinstance(one, ast.Assign) and one.lineno < call.lineno for target in one.targets if isinstance(target, ast.Name)}
    held |= set(holder.parameters) if holder is not None else set()
    word = next((one for one in ("rank", "global_rank") if one in held), None)
    line = module.lines[statement.lineno - 1]
    if word is None or line.strip() != module.source_of(statement, 500):
        return Fix(says)
    indent = line[: len(line) - len(line.lstrip())]
    return Fix(says, (replace(module, statement, f"if {word} == 0:\n{indent}    {line.strip()}"),), safe=True)


RULE = Rule(ID, CAUSE, "torch.save by all ranks to one path", WHY, 0.75, find)
