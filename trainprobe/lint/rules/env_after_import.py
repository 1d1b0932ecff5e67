"""An environment variable that is set after what reads it has been imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.environment import settings
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Event, Order, exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import name_of, stands_alone, taken_out
from trainprobe.lint.scenes import module_of

ID = "env-after-import"
CAUSE = "cpu-oversubscribed"
NUMERIC = {"numpy", "torch", "scipy", "pandas", "sklearn", "transformers", "datasets", "accelerate", "torchvision", "lightning", "pytorch_lightning"}
HUB = {"huggingface_hub", "transformers", "datasets", "accelerate", "diffusers"}
READ_BY: dict[str, tuple[set[str], str, str]] = {
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
        (
            NUMERIC,
            "cpu-oversubscribed",
            "The thread pools of OpenMP and BLAS take their size when the library is loaded; each rank then keeps a thread for every CPU.",
        ),
    ),
    **dict.fromkeys(
        ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE"),
        (HUB, "hub-unreachable", "huggingface_hub reads its constants when it is imported; the job still goes to the old cache, or out to the network."),
    ),
    **dict.fromkeys(
        ("TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE"),
        ({"transformers"}, "hub-unreachable", "transformers reads it when it is imported; the job still goes to the old cache, or out to the network."),
    ),
    **dict.fromkeys(
        ("HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE"),
        ({"datasets"}, "hub-unreachable", "datasets reads it when it is imported; the job still goes to the old cache, or out to the network."),
    ),
    "CUDA_VISIBLE_DEVICES": (
        {"<cuda>"},
        "wrong-device-binding",
        "CUDA reads it once, when the first context is made; the process keeps the GPUs that it had seen.",
    ),
}
CHILDREN = re.compile(
    r"subprocess\.\w+|os\.(exec|spawn|posix_spawn|fork|system|popen)\w*|((torch\.)?multiprocessing\.|concurrent\.futures\.)(\w+\(\)\.)?"
    r"(Process|Pool|spawn|start_processes|ProcessPoolExecutor)"
)
FIX = Fix("Set it before the import, at the top of the script, or in the environment of the job.")


def find(program: Program) -> Iterator[Finding]:
    if not any(one.variable in READ_BY for module in program.modules.values() for one in settings(program, module)):
        return
    told: set[ast.AST] = set()
    for trace in Order(program, _sees, _also).traces():
        known: dict[str, Event] = {}
        for event in trace:
            kind, _, what = event.kind.partition(":")
            if kind == "import":
                known.setdefault(what, event)
            elif kind == "env" and event.node not in told:
                readers, cause, why = READ_BY[what]
                reader = next((known[one] for one in known if one in readers), None)
                if reader is None or (reader.module is event.module and exclusive(event.module, reader.node, event.node)) or _is_for_children(program, event):
                    continue
                told.add(event.node)
                where = f"line {getattr(reader.node, 'lineno', 0)}" + ("" if reader.module is event.module else f" of {reader.module.path.rpartition('/')[2]}")
                says = f"{what} is set after {where} ({reader.module.source_of(reader.node, 50)}), where it was read."
                yield program.finding(ID, cause, event.module, event.node, says=says, why=why, confidence=0.75, fix=_fix(event, reader, what))


def _fix(event: Event, reader: Event, variable: str) -> Fix:
    """Move a number of threads ahead of the import that reads it: it changes how many threads work, not what they work out."""
    module, statement, imports = event.module, event.node, reader.node
    plain = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) and module.parents.get(statement) is module.tree
    if not plain or reader.module is not module or not variable.endswith("THREADS") or not isinstance(imports, ast.Import | ast.ImportFrom):
        return FIX
    if module.is_notebook or module.parents.get(imports) is not module.tree or not stands_alone(module, imports) or not isinstance(statement, ast.Assign):
        return FIX
    gone = taken_out(module, statement)
    if gone is None:
        return FIX
    text = module.source_of(statement, 500)
    ahead = "" if name_of(module, "os", imports.lineno) == "os" else "import os\n"
    return Fix(FIX.says, (insert_line(module, imports, ahead + text), gone), safe=True) if text.startswith("os.environ") else FIX


def _sees(program: Program, module: Module, call: ast.Call) -> str:
    return "import:<cuda>" if touches_cuda(program, module, call) else ""


def _also(program: Program, module: Module) -> Iterator[tuple[ast.AST, str]]:
    for setting in settings(program, module):
        if setting.variable in READ_BY:
            yield setting.node, f"env:{setting.variable}"
    statements: list[ast.Import | ast.ImportFrom] = [*module.of(ast.Import), *module.of(ast.ImportFrom)]
    for statement in statements:
        if any(isinstance(up, ast.If) and "TYPE_CHECKING" in module.source_of(up.test) for up in module.ancestors(statement)):
            continue
        names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""] if not statement.level else []
        for name in names:
            if name and module_of(program, program.import_target(module, name)) is None:
                yield statement, f"import:{name.partition('.')[0]}"


def _is_for_children(program: Program, event: Event) -> bool:
    """A launcher sets variables for the processes that it starts; who sets the threads of this process by a call means its children too."""
    module = event.module
    function = module.function_of(event.node)
    calls = module.top_calls if function is None else function.calls
    if any(isinstance(call.func, ast.Attribute) and call.func.attr == "set_num_threads" for call in calls):
        return True
    return any(CHILDREN.fullmatch(program.dotted(module, call.func)) for call in module.of(ast.Call))


RULE = Rule(ID, CAUSE, "Set too late in the environment", "What reads the variable has read it when it was imported.", 0.75, find)
