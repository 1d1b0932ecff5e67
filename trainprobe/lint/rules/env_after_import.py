"""An environment variable that is set after what reads it has been imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from trainprobe.lint.devices import touches_cuda
from trainprobe.lint.environment import settings
from trainprobe.lint.fixing import insert_line
from trainprobe.lint.jobs import module_of
from trainprobe.lint.model import Edit, Finding, Rule
from trainprobe.lint.modules import Module
from trainprobe.lint.order import Event, Order, exclusive
from trainprobe.lint.program import Program
from trainprobe.lint.rewrites import name_of, stands_alone, taken_out

RULE = Rule(
    id="env-after-import",
    cause="cpu-oversubscribed",
    title="Environment variable set after its reader was imported",
    why="The library that uses the variable read it at import.",
    fix=("Set it before the import, at the top of the script, or in the job's environment."),
    confidence=0.75,
)

NUMERIC = set(
    """
    numpy torch scipy pandas sklearn transformers datasets accelerate torchvision lightning
    pytorch_lightning
    """.split()
)
HUB = {"huggingface_hub", "transformers", "datasets", "accelerate", "diffusers"}
READ_BY: dict[str, tuple[set[str], str, str]] = {
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        (
            NUMERIC,
            "cpu-oversubscribed",
            (
                "OpenMP and BLAS size their thread pools when the library is loaded, so each rank"
                " keeps a thread for every CPU."
            ),
        ),
    ),
    **dict.fromkeys(
        ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "HUGGINGFACE_HUB_CACHE"),
        (
            HUB,
            "hub-unreachable",
            (
                "huggingface_hub reads its constants when it is imported; the job still goes to the"
                " old cache, or out to the network."
            ),
        ),
    ),
    **dict.fromkeys(
        ("TRANSFORMERS_OFFLINE", "TRANSFORMERS_CACHE"),
        (
            {"transformers"},
            "hub-unreachable",
            (
                "transformers reads it when it is imported; the job still goes to the old cache, or"
                " out to the network."
            ),
        ),
    ),
    **dict.fromkeys(
        ("HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE"),
        (
            {"datasets"},
            "hub-unreachable",
            (
                "datasets reads it when it is imported; the job still goes to the old cache, or out"
                " to the network."
            ),
        ),
    ),
    "CUDA_VISIBLE_DEVICES": (
        {"<cuda>"},
        "wrong-device-binding",
        (
            "CUDA reads it once, when the first context is made; the process keeps the GPUs that"
            " were visible then."
        ),
    ),
}
CHILDREN = re.compile(
    r"subprocess\.\w+|os\.(exec|spawn|posix_spawn|fork|system|popen)\w*"
    r"|((torch\.)?multiprocessing\.|concurrent\.futures\.)(\w+\(\)\.)?"
    r"(Process|Pool|spawn|start_processes|ProcessPoolExecutor)"
)


def find(program: Program) -> Iterator[Finding]:
    if not any(_sets_one(program, module) for module in program.modules.values()):
        return
    reported: set[ast.AST] = set()
    order = Order(program, _event_kind, _statement_events, partial(_sets_one, program))
    for trace in order.traces():
        known: dict[str, Event] = {}
        for event in trace:
            kind, _, what = event.kind.partition(":")
            if kind == "import":
                known.setdefault(what, event)
            elif kind == "env" and event.node not in reported:
                readers, cause, why = READ_BY[what]
                reader = next((known[item] for item in known if item in readers), None)
                if (
                    reader is None
                    or _is_second_call(event, reader)
                    or (
                        reader.module is event.module
                        and exclusive(event.module, reader.node, event.node)
                    )
                    or _is_for_children(program, event)
                ):
                    continue
                reported.add(event.node)
                where = reader.module.line_of(reader.node, event.module)
                message = (
                    f"{what} is set after {where} ({reader.module.source_of(reader.node, 50)}),"
                    " where it was read."
                )
                yield RULE.finding(
                    event.module,
                    event.node,
                    message,
                    cause=cause,
                    why=why,
                    edits=_edits(event, reader, what),
                )


def _sets_one(program: Program, module: Module) -> bool:
    return any(setting.variable in READ_BY for setting in settings(program, module))


def _is_second_call(event: Event, reader: Event) -> bool:
    """Whether an earlier call of the same function already set it in time."""
    same = (
        reader.module is event.module
        and event.module.function_of(event.node)
        is event.module.function_of(reader.node)
        is not None
    )
    return same and getattr(reader.node, "lineno", 0) > getattr(event.node, "lineno", 0)


def _edits(event: Event, reader: Event, variable: str) -> tuple[Edit, ...] | None:
    """Move a number of threads ahead of the import that reads it; results stay the same."""
    module, statement, imports = event.module, event.node, reader.node
    plain = (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and module.parents.get(statement) is module.tree
    )
    if (
        not plain
        or reader.module is not module
        or not variable.endswith("THREADS")
        or not isinstance(imports, ast.Import | ast.ImportFrom)
    ):
        return None
    if (
        module.is_notebook
        or module.parents.get(imports) is not module.tree
        or not stands_alone(module, imports)
        or not isinstance(statement, ast.Assign)
    ):
        return None
    gone = taken_out(module, statement)
    if gone is None:
        return None
    text = module.source_of(statement, 500)
    ahead = "" if name_of(module, "os", imports.lineno) == "os" else "import os\n"
    if not text.startswith("os.environ"):
        return None
    return (insert_line(module, imports, ahead + text), gone)


def _event_kind(program: Program, module: Module, call: ast.Call) -> str:
    return "import:<cuda>" if touches_cuda(program, module, call) else ""


def _statement_events(program: Program, module: Module) -> Iterator[tuple[ast.AST, str]]:
    for setting in settings(program, module):
        if setting.variable in READ_BY:
            yield setting.node, f"env:{setting.variable}"
    statements: list[ast.Import | ast.ImportFrom] = [
        *module.of(ast.Import),
        *module.of(ast.ImportFrom),
    ]
    for statement in statements:
        if any(
            isinstance(up, ast.If) and "TYPE_CHECKING" in module.source_of(up.test)
            for up in module.ancestors(statement)
        ):
            continue
        names = (
            [alias.name for alias in statement.names]
            if isinstance(statement, ast.Import)
            else [statement.module or ""]
            if not statement.level
            else []
        )
        for name in names:
            if name and module_of(program, program.import_target(module, name)) is None:
                yield statement, f"import:{name.partition('.')[0]}"


def _is_for_children(program: Program, event: Event) -> bool:
    """Whether the call that sets this process's threads is in a launcher, for its children."""
    module = event.module
    function = module.function_of(event.node)
    calls = module.top_calls if function is None else function.calls
    if any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "set_num_threads"
        for call in calls
    ):
        return True
    return any(
        CHILDREN.fullmatch(program.dotted(module, call.func)) for call in module.of(ast.Call)
    )
