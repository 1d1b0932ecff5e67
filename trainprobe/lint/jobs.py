"""Which modules run in one process of the job, and what is called in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint.calls import Call, calls_by_last_name
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program, remembered

STARTS = (
    "torch.distributed.init_process_group",
    "accelerate.Accelerator",
    "accelerate.PartialState",
    "deepspeed.init_distributed",
    "deepspeed.initialize",
    "torch.distributed.device_mesh.init_device_mesh",
)
DDP = "torch.nn.parallel.DistributedDataParallel"
WRAPS = (
    DDP,
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
)


@remembered
def imported_modules(program: Program, module: Module) -> list[tuple[ast.stmt, Module]]:
    """The project's modules that a module imports, with the import statement."""
    return list(_imported_modules(program, module))


def _imported_modules(program: Program, module: Module) -> Iterator[tuple[ast.stmt, Module]]:
    bound: dict[ast.AST, list[str]] = {}
    for held in module.bindings.values():
        for found in held.values():
            for binding in found:
                if binding.kind == "import":
                    bound.setdefault(binding.node, []).append(binding.dotted)
    for statement in (*module.of(ast.Import), *module.of(ast.ImportFrom)):
        for dotted in bound.get(statement, ()):
            other = module_of(program, program.import_target(module, dotted))
            if other is not None and other is not module:
                yield statement, other


def module_of(program: Program, dotted: str) -> Module | None:
    """Return the project's module that a dotted name leads into."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        found = program.modules.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


def importers(program: Program, modules: list[Module]) -> set[Module]:
    """Modules and all that import them, directly or through others."""
    up = _edges(program)[1]
    found, left = set(modules), list(modules)
    while left:
        new = up.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def in_jobs_of(program: Program, modules: list[Module]) -> set[Module]:
    """All modules that run in one process with one of these."""
    found = importers(program, modules)
    return set(_closure(list(found), _edges(program)[0], most=len(program.modules)))


@remembered
def job_modules(program: Program, module: Module) -> list[Module]:
    """The modules in one process with `module`: its imports, its importers and their imports."""
    down, up = _edges(program)
    importers = _closure([module], up)
    return _closure(importers, down) if len(importers) <= 40 else _closure([module], down)


@remembered
def _edges(program: Program) -> tuple[dict[Module, set[Module]], dict[Module, set[Module]]]:
    down: dict[Module, set[Module]] = {}
    up: dict[Module, set[Module]] = {}
    for module in program.modules.values():
        for _statement, other in imported_modules(program, module):
            down.setdefault(module, set()).add(other)
            up.setdefault(other, set()).add(module)
    return down, up


def _closure(
    start: list[Module], edges: dict[Module, set[Module]], most: int = 400
) -> list[Module]:
    visited, left = dict.fromkeys(start), list(start)
    while left and len(visited) < most:
        for other in sorted(edges.get(left.pop(), ()), key=lambda edge: edge.path):
            if other not in visited:
                visited[other] = None
                left.append(other)
    return list(visited)


def calls_in_job(program: Program, module: Module, *names: str) -> list[Call]:
    """Return the calls of these names in the job of `module`."""
    modules = set(job_modules(program, module))
    known = calls_by_last_name(program)
    return [
        call
        for name in names
        for call in known.get(name.rpartition(".")[2], ())
        if call.name == name and call.module in modules
    ]


@remembered
def runs_on_ranks(program: Program, module: Module) -> bool:
    """Whether the job of `module` runs as several ranks: it joins a group or wraps for one. What a
    notebook imports does not start it on several.
    """
    if module.is_notebook:
        return any(call.module is module for call in calls_in_job(program, module, *STARTS, *WRAPS))
    return bool(calls_in_job(program, module, *STARTS, *WRAPS))
