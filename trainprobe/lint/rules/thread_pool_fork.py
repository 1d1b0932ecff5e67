"""Libraries with thread pools in forked DataLoader workers: OpenCV, and fast tokenizers that were told to stay parallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import fixing
from trainprobe.lint.environment import settings
from trainprobe.lint.fixing import insert_after
from trainprobe.lint.loaders import has_workers, loaders, run_in_workers, start_method
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import stands_alone
from trainprobe.lint.scenes import Call, among, job
from trainprobe.lint.starts import SPAWNING

ID = "thread-pool-fork"
CAUSE = "fork-thread-pool"
WHY = "A forked worker has the pool but not its threads: a pool that was used before the fork hangs there. Where it does work, every worker starts a thread for each CPU."
TOKENIZERS = "The tokenizer's pool is turned off after a fork unless this is set to true; with it a worker waits for threads that its process does not have."


def find(program: Program) -> Iterator[Finding]:
    forked = [one for one in loaders(program) if has_workers(program, one) and start_method(program, one) not in SPAWNING]
    told: set[ast.AST] = set()
    for loader in forked:
        yield from _tokenizers(program, loader, told)
        if among(program, loader.module, "cv2.setNumThreads"):
            continue
        for function in run_in_workers(program, loader):
            call = next((one for one in function.calls if program.dotted(function.module, one.func).startswith("cv2.")), None)
            if call is not None:
                if call not in told:
                    told.add(call)
                    says = f"OpenCV works in the workers of the DataLoader in line {loader.node.lineno}, with its own threads in each."
                    yield program.finding(ID, CAUSE, function.module, call, says=says, why=WHY, confidence=0.5, fix=_one_thread(function.module))
                break


def _one_thread(module: Module) -> Fix:
    """Turn OpenCV's own threads off behind its import; its results are the same."""
    says = "Call cv2.setNumThreads(0) after `import cv2`."
    for statement in module.tree.body:
        plain = isinstance(statement, ast.Import) and len(statement.names) == 1 and statement.names[0].name == "cv2" and stands_alone(module, statement)
        if plain and not module.is_notebook and isinstance(statement, ast.Import):
            return Fix(says, (insert_after(module, statement, f"{statement.names[0].asname or 'cv2'}.setNumThreads(0)"),), safe=True)
    return Fix(says)


def _tokenizers(program: Program, loader: Call, told: set[ast.AST]) -> Iterator[Finding]:
    for module in job(program, loader.module):
        for one in settings(program, module):
            if one.variable != "TOKENIZERS_PARALLELISM" or one.value is None or one.node in told:
                continue
            value = program.value(module, one.value)
            if isinstance(value, str) and value.lower() in {"true", "1", "yes", "on", "y", "t"}:
                told.add(one.node)
                edits = (fixing.replace(module, one.value, '"false"'),) if isinstance(one.value, ast.Constant) else ()
                fix = Fix('Set it to "false" in jobs with workers.', edits, safe=bool(edits))
                says = f"Tokenizers are told to stay parallel, and the DataLoader in line {loader.node.lineno} forks workers."
                yield program.finding(ID, CAUSE, module, one.node, says=says, why=TOKENIZERS, confidence=0.6, fix=fix)


RULE = Rule(ID, CAUSE, "Thread pools in forked workers", WHY, 0.5, find)
