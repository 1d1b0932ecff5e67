"""How a model is wrapped for parallel training: DDP, FSDP, DeepSpeed."""

from __future__ import annotations

import ast
import re

from trainprobe.lint.calls import argument_for, callers, reaches
from trainprobe.lint.conditions import stated_around
from trainprobe.lint.expressions import Expression, class_of_object, origin
from trainprobe.lint.flow import LOOPS, before
from trainprobe.lint.jobs import module_of
from trainprobe.lint.mentions import mentions_pattern
from trainprobe.lint.modules import Binding, Function, Module, last_name, receiver_of
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.values import argument

CLASSES = {
    "torch.distributed.fsdp.FullyShardedDataParallel": "fsdp",
    "torch.nn.parallel.DistributedDataParallel": "ddp",
    "deepspeed.initialize": "deepspeed",
    "fairscale.nn.FullyShardedDataParallel": "fsdp",
    "torch.distributed.fsdp.fully_shard": "fsdp2",
    "torch.distributed._composable.fsdp.fully_shard": "fsdp2",
}


SET_UP = re.compile(
    r"(lightning(\.fabric)?\.Fabric\(\)|~(self\.)?fabric)\.setup(_module)?\(\)(\[\])?"
)
"""Fabric's way to wrap a model."""
STRATEGIES = {
    "fsdp": re.compile(r"FSDPStrategy|fsdp"),
    "deepspeed": re.compile(r"DeepSpeedStrategy|deepspeed"),
}
SHARDED = {"fsdp", "fsdp2", "deepspeed"}
SHARDING = re.compile(r"fsdp|deepspeed|zero_?3|FullySharded|is_sharded|shards_", re.IGNORECASE)
BUFFERED = re.compile(
    r"[Bb]atch_?[Nn]orm|BN\d?|[Bb]uffer|from_pretrained|resnet|backbone|timm|torchvision|rotary|position"
)
"""Names of layers and libraries whose models have buffers, which DDP broadcasts."""
SURELY_BUFFERED = re.compile(r"\w*[Bb]atch_?[Nn]orm\w*|register_buffer|.*torchvision\.models\..*")
SYNCED = re.compile(r"convert_sync_batchnorm|SyncBatchNorm|convert_syncbn_model")
MOVES = ("to", "cuda", "float", "half", "train", "eval", "requires_grad_")
"""Methods of a model that give the model."""
LIBRARIES = re.compile(r"(torchvision\.models|timm|transformers)\..*|.*\.from_pretrained")
"""What makes models of libraries, nearly all of which have buffers."""
MOST_CALLERS = 8
DEEPEST = 3


def wrapped(program: Program, module: Module, node: ast.expr, depth: int = 0) -> set[str]:
    """How a model is wrapped, by all its assignments: "fsdp", "fsdp2", "ddp", "deepspeed"; "ddp?"
    where nothing shows that it has buffers; also "group" where it is wrapped for a process group
    of its own. A parameter is what calls give it.
    """
    names = {program.dotted(module, node)}
    values: list[tuple[Module, ast.expr]] = []
    if isinstance(node, ast.Name):
        found = program.names.bindings(module, node)
        values = [
            (module, item.value)
            for item in _since_made_anew(module, node, found)[:10]
            if item.value is not None
            and item.kind in {"value", "unpack"}
            and not _comes_later(module, node, item)
        ]
    elif isinstance(node, ast.Attribute):
        base = program.dotted(module, node.value)
        cls = program.class_named(base[:-2]) if base.endswith("()") else None
        if cls is not None:
            values = program.names.attribute_values(cls, node.attr)[:10]
    names |= {program.dotted(where, value) for where, value in values}
    sharding = _sharding_of(program, module) if any(map(SET_UP.fullmatch, names)) else set()
    kinds = {
        kind
        for name in names
        if (kind := CLASSES.get(name.removesuffix("[]").removesuffix("()"), ""))
        and name.endswith(("()", "()[]"))
    }
    kinds |= sharding
    if isinstance(node, ast.Name | ast.Attribute):
        kinds |= _in_place(program, module, node)
    if isinstance(node, ast.Name) and not values and depth < DEEPEST:
        kinds |= _given(program, module, node, depth + 1)
    if "ddp" in kinds and any(
        _keeps_buffers(program, where, value) or _has_no_buffers(program, where, value)
        for where, value in values
    ):
        kinds.discard("ddp")
    if (
        "ddp" in kinds
        and values
        and not any(_has_buffers(program, where, value) for where, value in values)
    ):
        kinds = kinds - {"ddp"} | {"ddp?"}
    if kinds & SHARDED and is_whole_here(module, node):
        kinds -= SHARDED
    if kinds and any(_has_group(program, where, value) for where, value in values):
        kinds.add("group")
    return kinds


def _since_made_anew(module: Module, node: ast.Name, found: list[Binding]) -> list[Binding]:
    """The bindings from the last that a name certainly has where it stands: an assignment ahead in
    a block around it, of a value made without it.
    """
    scope = module.scope_of(node)
    blocks = {id(up) for up in module.ancestors(node)}
    for at in range(len(found) - 1, 0, -1):
        item = found[at]
        if (
            item.kind == "value"
            and item.value is not None
            and (item.node.__class__ is ast.Assign and item.line < node.lineno)
            and module.scope_of(item.node) is scope
            and id(module.parents[item.node]) in blocks
            and before(module, item.node, node)
            and node.id not in {getattr(part, "id", "") for part in ast.walk(item.value)}
        ):
            return found[at:]
    return found


def _comes_later(module: Module, node: ast.Name, item: Binding) -> bool:
    """Whether a name is given a value only after this, and no loop comes back."""
    loops = {up for up in module.ancestors(item.node) if isinstance(up, LOOPS)}
    return (
        module.scope_of(item.node) is module.scope_of(node)
        and before(module, node, item.node)
        and not loops.intersection(module.ancestors(node))
    )


def is_whole_here(module: Module, node: ast.expr) -> bool:
    """Whether a condition around says that the model is not sharded: `if args.fsdp: …, else: …`."""
    return any(
        not each.holds and SHARDING.search(each.text) for each in stated_around(module, node)
    )


def _sharding_of(program: Program, module: Module) -> set[str]:
    """How Fabric shards the models that it sets up: by the strategies that the module names."""
    return {
        kind for kind, pattern in STRATEGIES.items() if mentions_pattern(program, [module], pattern)
    }


def _given(program: Program, module: Module, node: ast.Name, depth: int) -> set[str]:
    """How the models are wrapped that calls give for a parameter, where all give the same."""
    function = module.function_of(node)
    if function is None or node.id not in function.parameters:
        return set()
    given = [
        wrapped(program, site.module, entry, depth)
        for site in callers(program, function)[:MOST_CALLERS]
        if (entry := argument_for(site.node, function, node.id)) is not None
    ]
    return set.intersection(*given) if given else set()


def _keeps_buffers(program: Program, module: Module, value: ast.expr) -> bool:
    made = origin(program, module, value)
    return (
        isinstance(made.node, ast.Call)
        and program.values.keyword(made.module, made.node, "broadcast_buffers", default=True)
        is False
    )


def _has_no_buffers(program: Program, module: Module, value: ast.expr) -> bool:
    """Whether DDP is given a model of the project whose file names nothing that has buffers."""
    made = origin(program, module, value)
    if not isinstance(made.node, ast.Call):
        return False
    given = argument(made.node, "module", 0)
    cls = class_of_object(program, Expression(made.module, given)) if given is not None else None
    return cls is not None and not mentions_pattern(program, [cls.module], BUFFERED)


def _has_buffers(program: Program, module: Module, value: ast.expr) -> bool:
    """Whether the model that DDP is given is known to have buffers: by its class, what makes it, or
    the library that it is from.
    """
    made = origin(program, module, value)
    if not isinstance(made.node, ast.Call):
        return False
    if mentions_pattern(program, [made.module], SYNCED):
        return True
    given = argument(made.node, "module", 0)
    return given is not None and _makes_buffers(program, Expression(made.module, given), 0)


def _makes_buffers(program: Program, place: Expression, depth: int) -> bool:
    """Whether what makes a model names layers or a library that have buffers, or is given a model
    that has: `nn.Sequential(backbone, head)`, `load(model)`.
    """
    made = origin(program, *place)
    while (inner := receiver_of(made.node, *MOVES)) is not None:
        made = origin(program, made.module, inner)
    if depth > DEEPEST:
        return False
    name = program.dotted(made.module, made.node)
    if not name.endswith(("()", "()[]")):
        return False
    name = name.removesuffix("[]").removesuffix("()")
    if LIBRARIES.fullmatch(name):
        return True
    making, holder = program.function(name), module_of(program, name)
    if making is not None:
        # a function may make one model or another
        if making.name == "__init__" and any(map(_names_buffers, reaches(program, making))):
            return True
    elif holder is not None and mentions_pattern(program, [holder], SURELY_BUFFERED):
        return True
    return isinstance(made.node, ast.Call) and any(
        _makes_buffers(program, Expression(made.module, each), depth + 1)
        for each in made.node.args
        if isinstance(each, ast.Name | ast.Call)
    )


def _names_buffers(function: Function) -> bool:
    return any(
        SURELY_BUFFERED.search(last_name(node))
        for node in ast.walk(function.node)
        if isinstance(node, ast.Name | ast.Attribute)
    )


def _has_group(program: Program, module: Module, value: ast.expr) -> bool:
    made = origin(program, module, value)
    group = argument(made.node, "process_group") if isinstance(made.node, ast.Call) else None
    return group is not None and program.value(made.module, group) is not None


def _in_place(program: Program, module: Module, node: ast.expr) -> set[str]:
    """`fully_shard(model)` as a statement shards its argument."""
    name = module.source_of(node)
    models = [call.args[0] for call in _sharding_calls(program, module)]
    return {"fsdp2" for model in models if module.source_of(model) == name}


@remembered
def _sharding_calls(program: Program, module: Module) -> list[ast.Call]:
    return [
        call
        for call in (module.of(ast.Call) if "fully_shard" in module.text else ())
        if is_fully_shard(program, module, call) and call.args
    ]


def is_fully_shard(program: Program, module: Module, call: ast.Call) -> bool:
    """Whether a call is torch's `fully_shard`; other packages have one that makes no DTensors."""
    name = program.dotted(module, call.func)
    return name.endswith("fully_shard") and name.startswith(("torch.distributed.", "~"))
