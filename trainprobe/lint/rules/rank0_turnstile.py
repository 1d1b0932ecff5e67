"""Long work in a turnstile: the others wait in a barrier that rank 0 reaches after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainprobe.lint import calls, flow
from trainprobe.lint.collectives import collective_of
from trainprobe.lint.jobs import calls_in_job
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program

RULE = Rule(
    id="rank0-turnstile",
    cause="rank0-long-task",
    title="Long work on rank 0 between two barriers",
    why=(
        "The other ranks wait in the barrier meanwhile, and abort the job after the process group's"
        " timeout (10 minutes with NCCL, 30 with gloo)."
    ),
    fix=(
        "Do this work before the job starts, or set init_process_group(timeout=…) above the time it"
        " may take."
    ),
    # what takes a minute looks alike: docs/lint-precision.md
    confidence=0.45,
)


LONG = set(
    """
    datasets.load_dataset shutil.copytree huggingface_hub.snapshot_download shutil.unpack_archive
    urllib.request.urlretrieve wget.download datasets.load_dataset().map
    datasets.load_dataset()[].map datasets.load_dataset().save_to_disk
    datasets.load_dataset().map().save_to_disk datasets.load_dataset().download_and_prepare
    tarfile.open().extractall zipfile.ZipFile().extractall
    torchvision.datasets.utils.download_and_extract_archive
    datasets.load_dataset_builder().download_and_prepare gdown.download
    """.split()
)


def find(program: Program) -> Iterator[Finding]:
    for module in program.examined:
        if "barrier" not in module.text and "wait_for_everyone" not in module.text:
            continue
        for holder in [None, *module.functions.values()]:
            nodes = module.top_calls if holder is None else holder.calls
            barriers = [call for call in nodes if _is_barrier(program, module, call)]
            if not barriers or _has_own_timeout(program, module):
                continue
            for call in nodes:
                what = _long(program, module, call)
                if what and _others_wait(program, module, call, barriers):
                    yield RULE.finding(
                        module,
                        call,
                        f"Only rank 0 does this ({what}), while the other ranks wait in the"
                        " barrier.",
                    )
                    break


def _is_barrier(program: Program, module: Module, call: ast.Call) -> bool:
    found = collective_of(program, module, call)
    return found is not None and found.kind == "barrier"


def _has_own_timeout(program: Program, module: Module) -> bool:
    """Whether somebody has set a timeout, or no process group is made here that would show it."""
    made = calls_in_job(program, module, "torch.distributed.init_process_group")
    return not made or any(
        keyword.arg in {"timeout", None} for call in made for keyword in call.node.keywords
    )


def _others_wait(
    program: Program, module: Module, call: ast.Call, barriers: list[ast.Call]
) -> bool:
    own = [guard.test.polarity for guard in flow.guards(program, module, call)]
    if own:
        return False
    holder = {
        barrier: {guard.test.polarity for guard in flow.guards(program, module, barrier)}
        for barrier in barriers
    }
    ahead = any(
        "others" in kinds and barrier.lineno < call.lineno for barrier, kinds in holder.items()
    )
    behind = any(
        "main" in kinds and barrier.lineno > call.lineno for barrier, kinds in holder.items()
    )
    return ahead and behind


def _long(program: Program, module: Module, call: ast.Call) -> str:
    name = program.dotted(module, call.func)
    if name in LONG:
        return name.rpartition(".")[2]
    function = program.called(module, call)
    if function is None:
        return ""
    for item in calls.reaches(program, function):
        for inner in item.calls:
            if program.dotted(item.module, inner.func) in LONG:
                return (
                    f"{function.name}, which calls"
                    f" {program.dotted(item.module, inner.func).rpartition('.')[2]}"
                )
    return ""
