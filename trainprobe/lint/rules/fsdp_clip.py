"""`torch.nn.utils.clip_grad_norm_` on a model wrapped by FullyShardedDataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.fixing import replace
from trainprobe.lint.mentions import mentions_pattern
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Module, receiver_of
from trainprobe.lint.program import Program
from trainprobe.lint.values import argument
from trainprobe.lint.wrappers import wrapped

RULE = Rule(
    id="fsdp-clip-grad-norm",
    cause="multi-rank-mismatch",
    title="torch's clip_grad_norm_ on an FSDP model",
    why=(
        "Each rank takes the norm of its own shard of the gradients, so ranks scale by different"
        " factors. FSDP's own clip_grad_norm_ reduces the norm over all shards."
    ),
    confidence=0.85,
)


WHOLE = re.compile(r"^(NO_SHARD|all_no_shard|uses_sharded_strategy)$")
CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"}


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per clip of FSDP parameters that bypasses the model."""
    for module in program.examined:
        if "clip_grad_norm_" not in module.text:
            continue
        for call in module.of(ast.Call):
            if program.dotted(module, call.func) not in CLIPS or not call.args:
                continue
            model = receiver_of(call.args[0], "parameters")
            if model is None:
                continue
            kinds = wrapped(program, module, model)
            if "fsdp" in kinds and not mentions_pattern(program, [module], WHOLE):
                name = module.source_of(model)
                message = f"clip_grad_norm_ takes the norm of this rank's shard of {name} only."
                yield RULE.finding(
                    module,
                    call,
                    message,
                    confidence=0.85 if kinds == {"fsdp"} else 0.6,
                    fix=f"Call {name}.clip_grad_norm_(max_norm) on all ranks.",
                    edits=_edits(module, call, name) if kinds == {"fsdp"} else None,
                )


def _edits(module: Module, call: ast.Call, name: str) -> tuple[Edit, ...] | None:
    most = argument(call, "max_norm", 1)
    plain = len(call.args) + len(call.keywords) == 2 and call.lineno == call.end_lineno
    if most is None or not plain or module.is_notebook:
        return None
    return (replace(module, call, f"{name}.clip_grad_norm_({module.source_of(most, 500)})"),)
