"""A turnstile with long work in it: the others wait in a barrier before it, and rank 0 comes to that barrier after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import calls, flow
from trainprobe.lint.collectives import collective_of
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import among

ID = "rank0-turnstile"
CAUSE = "rank0-long-task"
WHY = "The other ranks wait in the barrier from the start. After the process group's timeout (10 minutes with NCCL, 30 with gloo) they abort the job."
FIX = Fix("Do this work before the job, or give init_process_group(timeout=…) the time that it may take.")
LONG = {
    "datasets.load_dataset", "shutil.copytree", "huggingface_hub.snapshot_download", "shutil.unpack_archive", "urllib.request.urlretrieve", "wget.download",
    "datasets.load_dataset().map", "datasets.load_dataset()[].map", "datasets.load_dataset().save_to_disk", "datasets.load_dataset().map().save_to_disk",
    "datasets.load_dataset().download_and_prepare", "tarfile.open().extractall", "zipfile.ZipFile().extractall", "torchvision.datasets.utils.download_and_extract_archive",
    "datasets.load_dataset_builder().download_and_prepare", "gdown.download",
}  # fmt: skip


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        for holder in [None, *module.functions.values()]:
            nodes = module.top_calls if holder is None else holder.calls
            barriers = [call for call in nodes if _is_barrier(program, module, call)]
            if not barriers or _has_own_timeout(program, module):
                continue
            for call in nodes:
                what = _long(program, module, call)
                if what and _others_wait(program, module, call, barriers):
                    yield program.finding(
                        ID,
                        CAUSE,
                        module,
                        call,
                        says=f"Only rank 0 does this ({what}), while the other ranks wait in the barrier.",
                        why=WHY,
                        confidence=0.65,
                        fix=FIX,
                    )
                    break


def _is_barrier(program: Program, module: Module, call: ast.Call) -> bool:
    told = collective_of(program, module, call)
    return told is not None and told.kind == "barrier"


def _has_own_timeout(program: Program, module: Module) -> bool:
    """Whether somebody has set a timeout, or no process group is made here that would show it."""
    made = among(program, module, "torch.distributed.init_process_group")
    return not made or any(word.arg in {"timeout", None} for call in made for word in call.node.keywords)


def _others_wait(program: Program, module: Module, call: ast.Call, barriers: list[ast.Call]) -> bool:
    own = [guard.test.polarity for guard in flow.guards(program, module, call)]
    if own:
        return False
    held = {barrier: {guard.test.polarity for guard in flow.guards(program, module, barrier)} for barrier in barriers}
    ahead = any("others" in kinds and barrier.lineno < call.lineno for barrier, kinds in held.items())
    behind = any("main" in kinds and barrier.lineno > call.lineno for barrier, kinds in held.items())
    return ahead and behind


def _long(program: Program, module: Module, call: ast.Call) -> str:
    name = program.dotted(module, call.func)
    if name in LONG:
        return name.rpartition(".")[2]
    function = program.called(module, call)
    if function is None:
        return ""
    for one in calls.reaches(program, function):
        for inner in one.calls:
            if program.dotted(one.module, inner.func) in LONG:
                return f"{function.name}, which comes to {program.dotted(one.module, inner.func).rpartition('.')[2]}"
    return ""


RULE = Rule(ID, CAUSE, "Long work in a turnstile", WHY, 0.65, find)
