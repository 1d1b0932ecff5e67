"""Thread pools in forked DataLoader workers: OpenCV, and fast tokenizers told to stay parallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import fixing
from trainprobe.lint.calls import Call
from trainprobe.lint.environment import settings
from trainprobe.lint.fixing import insert_after
from trainprobe.lint.jobs import calls_in_job, job_modules
from trainprobe.lint.loaders import has_workers, loaders, run_in_workers, start_method
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import stands_alone
from trainprobe.lint.starts import SPAWNING

RULE = Rule(
    id="thread-pool-fork",
    cause="fork-thread-pool",
    title="Thread pools in forked workers",
    why=(
        "A forked worker has the pool but not its threads: a pool that was used before the fork"
        " hangs there. Where it works, every worker starts a thread for each CPU."
    ),
    fix="Call cv2.setNumThreads(0) after `import cv2`.",
    confidence=0.45,
)


TOKENIZERS = (
    "The tokenizer turns its pool off after a fork unless this is set to true; with it, a worker"
    " waits for threads that its process does not have."
)


def find(program: Program) -> Iterator[Finding]:
    forked = [
        item
        for item in loaders(program)
        if has_workers(program, item) and start_method(program, item) not in SPAWNING
    ]
    reported: set[ast.AST] = set()
    for loader in forked:
        yield from _tokenizers(program, loader, reported)
        if calls_in_job(program, loader.module, "cv2.setNumThreads"):
            continue
        for function in run_in_workers(program, loader):
            call = next(
                (
                    item
                    for item in function.calls
                    if program.dotted(function.module, item.func).startswith("cv2.")
                ),
                None,
            )
            if call is not None:
                if call not in reported:
                    reported.add(call)
                    message = (
                        "OpenCV runs with its own thread pool in each worker of the DataLoader in"
                        f" line {loader.node.lineno}."
                    )
                    yield RULE.finding(
                        function.module, call, message, edits=_one_thread(function.module)
                    )
                break


def _one_thread(module: Module) -> tuple[Edit, ...] | None:
    """Turn OpenCV's own threads off behind its import; its results are the same."""
    for statement in module.tree.body:
        if (
            isinstance(statement, ast.Import)
            and [alias.name for alias in statement.names] == ["cv2"]
            and stands_alone(module, statement)
            and not module.is_notebook
        ):
            name = statement.names[0].asname or "cv2"
            return (insert_after(module, statement, f"{name}.setNumThreads(0)"),)
    return None


def _tokenizers(program: Program, loader: Call, reported: set[ast.AST]) -> Iterator[Finding]:
    for module in job_modules(program, loader.module):
        for setting in settings(program, module):
            if (
                setting.variable != "TOKENIZERS_PARALLELISM"
                or setting.value is None
                or setting.node in reported
            ):
                continue
            value = program.value(module, setting.value)
            if isinstance(value, str) and value.lower() in {"true", "1", "yes", "on", "y", "t"}:
                reported.add(setting.node)
                edits = (
                    (fixing.replace(module, setting.value, '"false"'),)
                    if isinstance(setting.value, ast.Constant)
                    else None
                )
                message = (
                    "Tokenizers are set to stay parallel, and the DataLoader in line"
                    f" {loader.node.lineno} forks workers."
                )
                yield RULE.finding(
                    module,
                    setting.node,
                    message,
                    why=TOKENIZERS,
                    confidence=RULE.confidence,
                    fix='Set it to "false" in jobs with workers.',
                    edits=edits,
                )
