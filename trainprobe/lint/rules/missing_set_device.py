"""Ranks with NCCL that all use the GPU that happens to be current: GPU 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import ranks
from trainprobe.lint.calls import Call, calls_to, reaches
from trainprobe.lint.devices import device_kinds, device_of_call
from trainprobe.lint.expressions import argument_value, resolved_argument
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.jobs import WRAPS, calls_in_job, job_modules
from trainprobe.lint.mentions import is_named, is_run_by
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Module, method_called
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import name_of, stands_alone, with_import
from trainprobe.lint.values import argument

RULE = Rule(
    id="missing-set-device",
    cause="wrong-device-binding",
    title="No GPU selected for each rank",
    why=(
        "Each process starts with GPU 0 as its current device. Without set_device all ranks of a"
        " node put their model there: 'Duplicate GPU detected', or out of memory."
    ),
    fix="Before init_process_group: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])).",
    confidence=0.75,
)


CURRENT = (
    "Every rank makes a CUDA context on GPU 0 beside its own: memory is lost there, and a barrier"
    " or a collective of Python objects may hang."
)
ON_CURRENT = set(
    """
    torch.distributed.broadcast_object_list
    torch.distributed.all_gather_object torch.distributed.gather_object
    torch.cuda.empty_cache torch.cuda.synchronize torch.cuda.memory_allocated
    torch.cuda.max_memory_allocated torch.cuda.Stream torch.cuda.Event
    """.split()
)
"""What acts on the current GPU unless it is told another."""
SHARDERS = {"torch.distributed.fsdp.FullyShardedDataParallel"}
"""What computes on the current GPU unless it is told another (docs of torch 2.x)."""
SETS = ("set_device", "set_device_index", "CUDA_VISIBLE_DEVICES")


def find(program: Program) -> Iterator[Finding]:
    for call in calls_to(program, "torch.distributed.init_process_group"):
        backend = resolved_argument(program, call, "backend", 0)
        if (
            backend is None
            or resolved_argument(program, call, "device_id") is not None
            or any(isinstance(node, ast.Starred) for node in call.node.args)
        ):
            continue
        # `"nccl" if torch.cuda.is_available() else "gloo"`
        chosen = backend.node.body if isinstance(backend.node, ast.IfExp) else backend.node
        value = program.value(backend.module, chosen)
        if not isinstance(value, str) or "nccl" not in value:
            continue
        modules = job_modules(program, call.module)
        if (
            is_named(program, modules, *SETS)
            or is_run_by(program, modules, "accelerate", "deepspeed", "lightning")
            or calls_in_job(program, call.module, "torch.cuda.device")
        ):
            continue
        used = [use for module in modules for use in _uses(program, module)]
        if used and all(used):
            message = (
                "Nothing selects a GPU for this rank, and the job puts tensors on the current GPU."
            )
            yield RULE.finding(call.module, call.node, message, edits=_edits(program, call))
            continue
        current = next(
            (use for module in modules for use in _current(program, module, call.module)), None
        )
        if used and current is not None:
            message = (
                "The tensors go to a GPU of each rank's own, but GPU 0 stays the current one, and"
                f" {current.name} ({current.module.line_of(current.node, call.module)}) works"
                " there on every rank."
            )
            yield RULE.finding(
                call.module,
                call.node,
                message,
                why=CURRENT,
                confidence=0.55,
                edits=_edits(program, call),
            )


def _current(program: Program, module: Module, starts: Module) -> Iterator[Call]:
    """What of a module works on the current GPU: NCCL's objects, pinned loaders."""
    run = set(reaches(program, *starts.functions.values()))
    for call in module.of(ast.Call):
        if module is not starts and module.is_of_script(call):
            continue
        name = program.dotted(module, call.func)
        if (
            name in ON_CURRENT
            and not call.args[0 if "cuda" in name else 9 :]
            and (module is starts or module.function_of(call) in run)
        ):
            yield Call(module, call, f"{name.rpartition('.')[2]}()")
        elif (
            name == "torch.utils.data.DataLoader"
            and argument_value(program, Call(module, call, name), "pin_memory", 7) is True
        ):
            yield Call(module, call, "the loader's pinning of memory")


def _edits(program: Program, call: Call) -> tuple[Edit, ...] | None:
    """Bind the rank ahead of init_process_group, where a launcher sets LOCAL_RANK."""
    module, statement = call.module, call.module.statement_of(call.node)
    ranked = any(argument(call.node, name) is not None for name in ("rank", "world_size", "store"))
    spawned = (
        ranked
        or calls_in_job(program, module, "torch.multiprocessing.spawn")
        or any(_names_first(program, item) for item in job_modules(program, module))
    )
    torch = name_of(module, "torch", statement.lineno)
    if (
        spawned
        or torch != "torch"
        or module.is_notebook
        or not isinstance(statement, ast.Expr)
        or not stands_alone(module, statement)
    ):
        return None
    imported = with_import(module, "os", statement.lineno)
    if imported is None:
        return None
    bound = (
        'if torch.cuda.is_available():\n    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK",'
        ' "0")))'
    )
    return (*imported, insert_line(module, statement, bound))


def _names_first(program: Program, module: Module) -> bool:
    """Whether GPU 0 is named as such, which no set_device changes."""
    places = (device_of_call(program, module, call) for call in module.of(ast.Call))
    return any(
        "cuda:0" in device_kinds(program, place.module, place.node)
        for place in places
        if place is not None
    )


def _uses(program: Program, module: Module) -> Iterator[bool]:
    """For each place that puts something on a GPU: whether it is the same GPU for all ranks."""
    for call in module.of(ast.Call):
        name = method_called(call)
        if name == "cuda" and program.dotted(module, call.func) != "torch.cuda":
            yield not call.args and not call.keywords
            continue
        if program.dotted(module, call.func) in WRAPS and argument(call, "device_ids", 1):
            yield False
            continue
        if (
            program.dotted(module, call.func) in SHARDERS
            and argument(call, "device_id") is None
            and argument(call, "mesh") is None
        ):
            yield True
            continue
        place = device_of_call(program, module, call)
        if place is None:
            continue
        kinds = device_kinds(program, place.module, place.node)
        if any(kind.startswith("cuda") for kind in kinds):
            yield kinds <= {"cuda", "cuda:0", "cpu"}
        elif not kinds and (
            ranks.kind_of(program, place.module, place.node)
            or "rank" in place.module.source_of(place.node)
        ):
            yield False
