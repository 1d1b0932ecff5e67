"""`torch.nn.utils.clip_grad_norm_` on a model wrapped by FullyShardedDataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.collectives import wrapped
from trainprobe.lint.fixing import replace
from trainprobe.lint.mentions import is_told_in
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument

ID = "fsdp-clip-grad-norm"
CAUSE = "multi-rank-mismatch"
WHY = "Each rank holds a part of the gradients and takes the norm of that part, so ranks scale by different factors; FSDP's own clip_grad_norm_ adds the parts up."
WHOLE = re.compile(r"^(NO_SHARD|all_no_shard|uses_sharded_strategy)$")
CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"}


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per clip of an FSDP model's parameters that does not go through the model."""
    for module in program.examined:
        if "clip_grad_norm_" not in module.text:
            continue
        for call in module.of(ast.Call):
            if program.dotted(module, call.func) not in CLIPS or not call.args:
                continue
            given = call.args[0]
            if not (isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters"):
                continue
            kinds = wrapped(program, module, given.func.value)
            if "fsdp" in kinds and not is_told_in(program, [module], WHOLE):
                name = module.source_of(given.func.value)
                says = f"clip_grad_norm_ takes the norm of this rank's part of {name}, which FSDP shards."
                yield program.finding(
                    ID, CAUSE, module, call, says=says, why=WHY, confidence=0.85 if kinds == {"fsdp"} else 0.6, fix=_fix(module, call, name, kinds)
                )


def _fix(module: Module, call: ast.Call, name: str, kinds: set[str]) -> Fix:
    says = f"Call {name}.clip_grad_norm_(max_norm) on all ranks."
    most = argument(call, "max_norm", 1)
    plain = most is not None and len(call.args) + len(call.keywords) == 2 and call.lineno == call.end_lineno
    if kinds != {"fsdp"} or not plain or most is None or module.is_notebook:
        return Fix(says)
    return Fix(says, (replace(module, call, f"{name}.clip_grad_norm_({module.source_of(most, 500)})"),), safe=True)


RULE = Rule(ID, CAUSE, "torch's clip_grad_norm_ on an FSDP model", WHY, 0.85, find)
