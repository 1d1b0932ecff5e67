"""Collective calls of torch, accelerate, transformers, Lightning, DeepSpeed and horovod."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from trainprobe.lint import sharded
from trainprobe.lint.calls import argument_for
from trainprobe.lint.expressions import origin
from trainprobe.lint.gradients import is_without_gradients
from trainprobe.lint.jobs import calls_in_job, job_modules
from trainprobe.lint.mentions import is_run_by, mentions, mentions_pattern
from trainprobe.lint.modules import Class, Module
from trainprobe.lint.program import Program, remembered
from trainprobe.lint.values import argument
from trainprobe.lint.wrappers import SHARDED, wrapped


@dataclass(frozen=True)
class Collective:
    """A collective call. `name` is its short form; `sure` the confidence that it is one."""

    name: str
    says: str
    sure: float
    kind: str = "collective"
    """collective | barrier | framework | sharded (only where the model is sharded) | setup (a
    constructor or a new group)
    """
    group: bool = False
    """It names a process group, so some ranks may rightly not call it."""
    is_made_up_for: bool = False
    """A rank that does it alone leaves out its next one, and nobody waits unless another
    collective comes between.
    """


def of_all_ranks(
    name: str, sure: float, kind: str = "collective", *, call: str = "", group: bool = False
) -> Collective:
    """A collective of all ranks; `call` names it in the sentence, `name` where that is empty."""
    sentence = f"{call or name} is a collective of all ranks"
    return Collective(name, sentence, sure, kind, group)


GROUP_AT = {
    "all_reduce": 2,
    "all_gather": 2,
    "all_gather_object": 2,
    "all_gather_into_tensor": 2,
    "reduce": 3,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "broadcast": 2,
    "broadcast_object_list": 2,
    "scatter": 3,
    "scatter_object_list": 3,
    "gather": 3,
    "gather_object": 3,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "barrier": 0,
    "monitored_barrier": 0,
    "all_gather_coalesced": 2,
    "all_reduce_coalesced": 2,
}
"""torch.distributed's collectives, with the position of `group` (docs of torch 2.x)."""
SETUP = {
    "torch.distributed.init_process_group": "init_process_group",
    "torch.distributed.new_group": "new_group",
    "torch.distributed.new_subgroups": "new_group",
    "torch.distributed.device_mesh.init_device_mesh": "init_device_mesh",
    "torch.distributed.init_device_mesh": "init_device_mesh",
    "torch.nn.parallel.DistributedDataParallel": "DistributedDataParallel()",
    "torch.distributed.fsdp.FullyShardedDataParallel": "FullyShardedDataParallel()",
}
CHECKPOINT = re.compile(
    r"torch\.distributed\.checkpoint\.((state_dict_(saver|loader)\.)?(save|load|async_save"
    r"|save_state_dict|load_state_dict)"
    r"|(state_dict\.)?(get|set)_(model_|optimizer_)?state_dict)"
)
STATE_DICTS = {"get_state_dict", "set_state_dict"}
ACCELERATOR = {
    "wait_for_everyone": ("barrier", 0.95),
    "gather": ("collective", 0.95),
    "gather_for_metrics": ("collective", 0.95),
    "reduce": ("collective", 0.95),
    "pad_across_processes": ("collective", 0.9),
    "save_state": ("sharded", 0.62),
    "load_state": ("sharded", 0.62),
    "get_state_dict": ("sharded", 0.5),
    "save_model": ("sharded", 0.5),
    "backward": ("framework", 0.75),
    "prepare": ("setup", 0.6),
    "prepare_model": ("setup", 0.6),
}
ACCELERATE_OPERATIONS = re.compile(
    r"accelerate\.utils\.(operations\.|other\.)?(gather|gather_object|broadcast"
    r"|broadcast_object_list|reduce|pad_across_processes|wait_for_everyone)"
)
LIGHTNING = {
    "fit": 0.9,
    "validate": 0.9,
    "test": 0.9,
    "predict": 0.9,
    "save_checkpoint": 0.85,
    "strategy.barrier": 0.95,
    "strategy.broadcast": 0.95,
    "strategy.reduce": 0.9,
}
FABRIC = {
    "barrier": 0.95,
    "all_gather": 0.95,
    "all_reduce": 0.95,
    "broadcast": 0.95,
    "save": 0.6,
    "load": 0.6,
    "backward": 0.75,
    "setup": 0.6,
}
BOOSTER = {"save_model", "save_optimizer", "load_model", "load_optimizer"}
"""ColossalAI's ways to save and load, which all ranks call (docs of Booster)."""
MODULES = {"dist", "distributed"}
"""Names under which torch.distributed is handed around."""
HOROVOD = set(
    """
    allreduce allreduce_ allgather allgather_object broadcast broadcast_ broadcast_object
    broadcast_parameters broadcast_optimizer_state barrier join alltoall
    """.split()
)
BARRIERS = dict.fromkeys(("barrier", "wait_for_everyone", "strategy.barrier"), "barrier")
PARTS = {"clip_grad_norm_", "get_total_norm", "distribute_tensor", "redistribute"}
ENGINE = {
    "save_checkpoint": 0.85,
    "load_checkpoint": 0.8,
    "save_16bit_model": 0.7,
    "backward": 0.9,
    "step": 0.9,
    "__call__": 0.7,
}
SHARDED_METHODS = set(
    """
    state_dict load_state_dict clip_grad_norm_ forward generate __call__ summon_full_params
    save_pretrained
    """.split()
)
FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
FSDP_WIDE = {"summon_full_params", "optim_state_dict", "full_optim_state_dict"}
"""Static methods of FSDP in which all ranks meet (docs of torch 2.x)."""
SHARDS = re.compile(r"fsdp|deepspeed|zero_?3|FullySharded", re.IGNORECASE)
TRAINER = re.compile(r"(transformers|trl|sentence_transformers|setfit)\.([\w.]+\.)?\w*Trainer")


@remembered
def collective_of(program: Program, module: Module, call: ast.Call) -> Collective | None:
    """The collective that a call is; None if it is none or reaches one through project code."""
    return _named(program, module, call, program.dotted(module, call.func))


def _named(program: Program, module: Module, call: ast.Call, name: str) -> Collective | None:  # noqa: PLR0911, PLR0912 - one return per library
    if not name:
        return None
    receiver, _, last = name.rpartition(".")
    if receiver == "torch.distributed" or receiver.startswith("torch.distributed.nn"):
        return _torch(program, module, call, last, name)
    if name in SETUP:
        group = _has_group(program, module, call, 1 if "FullySharded" in name else None)
        return of_all_ranks(SETUP[name], 0.9, "setup", group=group)
    if name.startswith("torch.distributed.checkpoint") and CHECKPOINT.fullmatch(name):
        if program.values.keyword(module, call, "no_dist", default=False) is True:
            return None
        saving = f"torch.distributed.checkpoint's {last}"
        group = _has_group(program, module, call, None)
        sure = 0.85
        if last.endswith(("model_state_dict", "optimizer_state_dict")) or last in STATE_DICTS:
            # of a model that is not sharded, each rank takes its own
            sharded = call.args and wrapped(program, module, call.args[0]) & SHARDED
            sure = sure if sharded else 0.45
        return of_all_ranks(f"checkpoint.{last}", sure, "framework", call=saving, group=group)
    if last in FSDP_WIDE and receiver in {FSDP, "fairscale.nn.FullyShardedDataParallel"}:
        sentence = f"{last} of an FSDP model gathers its parts from all ranks"
        return Collective(last, sentence, 0.9, "sharded")
    if name == "deepspeed.zero.GatheredParameters":
        if program.values.keyword(module, call, "enabled", default=True) is False:
            return None
        sentence = "GatheredParameters gathers ZeRO-3 parameters from all ranks"
        return Collective(last, sentence, 0.8, "sharded")
    if last == "full_tensor" and isinstance(call.func, ast.Attribute):
        sentence = "full_tensor() of a sharded tensor gathers its parts from all ranks"
        return Collective("full_tensor", sentence, 0.85)
    if last in PARTS and _of_parts(program, module, call, name):
        return of_all_ranks(last, 0.85, call=f"{last} of sharded tensors")
    if receiver.startswith("horovod.") and last in HOROVOD:
        return of_all_ranks(last, 0.9, call=f"horovod's {last}")
    if ACCELERATE_OPERATIONS.fullmatch(name):
        return of_all_ranks(
            last, 0.9, BARRIERS.get(last, "collective"), call=f"accelerate's {last}"
        )
    if not isinstance(call.func, ast.Attribute):
        if name.endswith("()") or name.startswith("~"):
            return _sharded(program, module, call, call.func, "__call__")
        if last != "barrier" or program.called(module, call) is not None:
            return None
        return of_all_ranks("barrier", 0.7, "barrier", call="a barrier")
    return _method(program, module, call, receiver, last) or _sharded(
        program, module, call, call.func.value, last
    )


def _torch(
    program: Program, module: Module, call: ast.Call, last: str, name: str
) -> Collective | None:
    if name in SETUP:
        size = program.values.keyword(module, call, "world_size", 3)
        return of_all_ranks(SETUP[name], 0.9, "setup", group=isinstance(size, int))
    if last not in GROUP_AT:
        return None
    kind = "barrier" if "barrier" in last else "collective"
    sentence = f"{last} is a collective of the whole group"
    return Collective(last, sentence, 0.95, kind, _has_group(program, module, call, GROUP_AT[last]))


def _of_parts(program: Program, module: Module, call: ast.Call, name: str) -> bool:
    if not sharded.is_used(program):
        return False
    if name.startswith(sharded.PLACES):
        return True
    holder = call.func.value if isinstance(call.func, ast.Attribute) else None
    return sharded.clips(program, module, call) or (
        name.endswith(".redistribute")
        and holder is not None
        and bool(sharded.kind_of(program, module, holder))
    )


def _has_group(program: Program, module: Module, call: ast.Call, position: int | None) -> bool:
    item = argument(call, "group", position) or argument(call, "process_group")
    if item is None or (isinstance(item, ast.Constant) and item.value is None):
        return False
    return program.dotted(module, item) not in {
        "torch.distributed.group.WORLD",
        "torch.distributed.GroupMember.WORLD",
    }


def _method(
    program: Program, module: Module, call: ast.Call, receiver: str, last: str
) -> Collective | None:
    bare = receiver.removesuffix("()").rpartition(".")[2].lstrip("~")
    if receiver in {
        "accelerate.Accelerator()",
        "accelerate.PartialState()",
        "accelerate.state.PartialState()",
    } or (bare in {"accelerator", "_accelerator"} and not receiver.endswith("()")):
        found = ACCELERATOR.get(last)
        if found is not None and found[0] == "sharded" and not _offers_sharding(program, module):
            found = (found[0], 0.45)  # under DDP each rank has all of it, and nobody waits
        if found is None:
            return None
        return Collective(last, f"Accelerator.{last} {_when(found[0])}", found[1], found[0])
    if last in BOOSTER and (
        receiver == "colossalai.booster.Booster()"
        or (bare == "booster" and "colossalai" in mentions(program, module).packages)
    ):
        sentence = f"Booster.{last} gathers the parts of a sharded model from all ranks"
        return Collective(last, sentence, 0.62, "sharded")
    if last in {"wait_for_everyone", "gather_for_metrics"}:
        return of_all_ranks(last, 0.85, BARRIERS.get(last, "collective"))
    if last in FABRIC and (
        (bare == "fabric" and is_run_by(program, job_modules(program, module), "lightning"))
        or receiver in {"lightning.Fabric()", "lightning.fabric.Fabric()"}
    ):
        kind = BARRIERS.get(last, "framework")
        return of_all_ranks(last, FABRIC[last], kind, call=f"Fabric.{last}")
    owner = receiver.removesuffix(".strategy").rpartition(".")[2].lstrip("~")
    if (
        owner in {"trainer", "_trainer"}
        or receiver.endswith(("Trainer()", "()"))
        or ".trainer" in receiver
    ):
        return _trainer(program, module, call, receiver, last)
    if (
        last == "barrier"
        and not receiver.startswith(("threading", "multiprocessing"))
        and program.called(module, call) is None
    ):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        labels = [isinstance(program.value(module, each), str) for each in given]
        # an object is a communicator with members of its own, unless its barriers have labels
        own = receiver.startswith("~") or "()" in receiver
        group = not all(labels) or (own and not given and bare not in MODULES)
        return of_all_ranks("barrier", 0.7, "barrier", call="a barrier", group=group)
    return None


@remembered
def _offers_sharding(program: Program, module: Module) -> bool:
    """Whether the job's Accelerator is given a plugin that shards, be it where the user asks."""
    return any(
        (given := argument(call.node, name)) is not None
        and isinstance(origin(program, call.module, given).node, ast.Call)
        for call in calls_in_job(program, module, "accelerate.Accelerator")
        for name in ("fsdp_plugin", "deepspeed_plugin")
    )


def _trainer(
    program: Program, module: Module, call: ast.Call, receiver: str, last: str
) -> Collective | None:
    lightning = is_a(program, receiver, re.compile(r"lightning\.(\w+\.)*(Trainer|LightningModule)"))
    hugging = is_a(program, receiver, TRAINER)
    if not lightning and not hugging and receiver.startswith("~") and not receiver.endswith("()"):
        known = mentions(program, module).packages
        hugging = bool(known & {"transformers", "trl"})
        lightning = bool(known & {"lightning", "pytorch_lightning"})
        if hugging and lightning:
            return None
    ending = receiver.rpartition(".")[2]
    if lightning and ending == "strategy":
        last = f"strategy.{last}"
    if lightning and last in {"log", "all_gather", "log_dict"} and not receiver.startswith("~"):
        synced = (
            last == "all_gather"
            or program.values.keyword(module, call, "sync_dist", default=False) is True
        )
        module_call = f"LightningModule.{last}"
        return of_all_ranks(last, 0.9, "framework", call=module_call) if synced else None
    if lightning and last in LIGHTNING:
        kind = BARRIERS.get(last, "framework")
        return of_all_ranks(last, LIGHTNING[last], kind, call=f"Trainer.{last}")
    if hugging and last in {"train", "evaluate", "predict"}:
        sentence = (
            f"Trainer.{last} is a collective of all ranks: each gathers its part of the results"
        )
        return Collective(last, sentence, 0.85, "framework")
    if hugging and last == "save_model":
        sharded = mentions_pattern(program, [module], SHARDS)
        sentence = (
            "Trainer.save_model gathers the parameters from all ranks under FSDP and DeepSpeed"
            " ZeRO-3"
        )
        return Collective(last, sentence, 0.75 if sharded else 0.45, "sharded")
    return None


def _when(kind: str) -> str:
    return (
        "gathers the parameters from all ranks under FSDP and DeepSpeed ZeRO-3"
        if kind == "sharded"
        else "is a collective of all ranks"
    )


def _sharded(
    program: Program, module: Module, call: ast.Call, receiver: ast.expr, last: str
) -> Collective | None:
    """A method of a wrapped model in which all ranks meet."""
    if last not in SHARDED_METHODS and last not in ENGINE:
        return None
    found = of_wrapped_in(program, module, call, wrapped(program, module, receiver), last)
    gathered = any(keyword.arg == "state_dict" for keyword in call.keywords)
    if found is None and last == "save_pretrained" and isinstance(receiver, ast.Name):
        return None if gathered else _of_trained(program, module, receiver)
    return found


SHARDINGS = {
    "FSDP": re.compile(r"fsdp|FullySharded", re.IGNORECASE),
    "DeepSpeed ZeRO-3": re.compile(r"deepspeed|zero_?3", re.IGNORECASE),
}
OF_PARAMETERS = re.compile(r"fsdp|FullySharded|zero_?3|zero_stage|stage_?3", re.IGNORECASE)
"""What shards the parameters for certain: ZeRO-1 and 2 do not."""


def _of_trained(program: Program, module: Module, model: ast.Name) -> Collective | None:
    """The collective in saving a model that a Trainer has trained, in a job that may shard it: the
    program names FSDP or DeepSpeed, and no condition of this function asks for it.
    """
    scope = module.scope_of(model)
    if not any(
        call.lineno < model.lineno
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "train"
        and module.scope_of(call) is scope
        and _is_given(program, module, call.func.value, model.id)
        for call in module.of(ast.Call)
    ):
        return None
    asked = " ".join(
        ast.unparse(node.test) for node in module.of(ast.If) if module.scope_of(node) is scope
    )
    job = job_modules(program, module)
    unasked = [
        name
        for name, pattern in SHARDINGS.items()
        if not pattern.search(asked) and mentions_pattern(program, job, pattern)
    ]
    if not unasked:
        return None
    sentence = (
        "save_pretrained() of a model that a Trainer has trained gathers its parameters from all"
        f" ranks under {' and '.join(unasked)}"
    )
    sure = 0.6 if mentions_pattern(program, job, OF_PARAMETERS) else 0.45
    return Collective("model.save_pretrained", sentence, sure, "sharded")


def _is_given(program: Program, module: Module, trainer: ast.expr, model: str) -> bool:
    """Whether what makes a Trainer, itself or in a function of the project, is given the model."""
    made = origin(program, module, trainer)
    if not isinstance(made.node, ast.Call) or made.module is not module:
        return False
    if is_a(program, f"{program.dotted(module, made.node.func)}()", TRAINER):
        given = argument(made.node, "model", 0)
        return isinstance(given, ast.Name) and given.id == model
    function = program.called(module, made.node)
    if function is None or not any(
        is_a(program, f"{program.dotted(function.module, inner.func)}()", TRAINER)
        for inner in function.calls
    ):
        return False
    parameter = next((name for name in function.parameters if name.endswith("model")), "")
    given = argument_for(made.node, function, parameter) if parameter else None
    return isinstance(given, ast.Name) and given.id == model


def of_wrapped_in(
    program: Program, module: Module, call: ast.Call, kinds: set[str], last: str
) -> Collective | None:
    """The collective in a method of a wrapped model, as it is called here."""
    found = of_wrapped(kinds, last)
    if found is not None and "ddp" in kinds and is_without_gradients(program, module, call):
        return replace(found, sure=min(found.sure, 0.45), is_made_up_for=True)
    return found


def of_wrapped(kinds: set[str], last: str) -> Collective | None:
    """The collective in a method of a wrapped model; `__call__` is the forward pass."""
    group, kinds = "group" in kinds, kinds - {"group"}
    name_of_step = (
        "the forward pass" if last in {"__call__", "forward", "generate"} else f"{last}()"
    )
    if "fsdp" in kinds and last in SHARDED_METHODS:
        sentence = f"{name_of_step} of an FSDP model gathers its parameters from all ranks"
        sure = 0.9 if len(kinds) == 1 else 0.75
        return Collective(f"model.{last}", sentence, sure, "sharded", group)
    if "fsdp2" in kinds and last in {"__call__", "forward", "generate"}:
        sentence = f"{name_of_step} of an FSDP model gathers its parameters from all ranks"
        return Collective(f"model.{last}", sentence, 0.85, "sharded", group)
    if "deepspeed" in kinds and last in ENGINE:
        sentence = f"{name_of_step} of a DeepSpeed engine is a collective of all ranks"
        return Collective(f"engine.{last}", sentence, ENGINE[last], "framework")
    if kinds & {"ddp", "ddp?"} and last in {"__call__", "forward"}:
        sentence = f"{name_of_step} of a DDP model broadcasts its buffers from rank 0"
        sure = 0.6 if "ddp" in kinds else 0.45
        return Collective(f"model.{last}", sentence, sure, "framework", group)
    return None


def is_a(program: Program, receiver: str, pattern: re.Pattern[str], depth: int = 0) -> bool:
    """Whether `receiver` is an instance of that class or of a project subclass of it."""
    name = receiver.removesuffix(".strategy")
    if not name.endswith("()") or depth > 6:
        return False
    name = name[:-2]
    if pattern.fullmatch(name):
        return True
    cls = program.names.definition(name)
    if not isinstance(cls, Class):
        return False
    return any(
        is_a(program, f"{program.dotted(cls.module, base)}()", pattern, depth + 1)
        for base in cls.node.bases
    )
