"""Long work on one rank while the others wait in a barrier that ends with the default timeout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.collectives import collective_of
from trainprobe.lint.jobs import job_modules
from trainprobe.lint.model import Finding, Rule
from trainprobe.lint.modules import Function, Module, method_called
from trainprobe.lint.program import Program
from trainprobe.lint.reached import reached_by_call
from trainprobe.lint.values import argument

RULE = Rule(
    id="rank0-long-task",
    cause="rank0-long-task",
    title="long work on one rank before a collective with the default timeout",
    why=(
        "The other ranks wait for it in a collective, and the process group gives up after its"
        " timeout: 10 minutes with NCCL and 30 with gloo unless one is set."
    ),
    fix=(
        "Do it before the ranks start, set init_process_group(timeout=timedelta(hours=…)) above the"
        " time it takes, or split the work among the ranks."
    ),
    confidence=0.45,  # how long it takes, the source does not tell
)

LONG = re.compile(
    r"(datasets\.load_dataset|datasets\.load_dataset_builder|huggingface_hub\.snapshot_download"
    r"|huggingface_hub\.hf_hub_download|urllib\.request\.urlretrieve"
    r"|subprocess\.(run|check_call|check_output|call)|os\.system|tarfile\.open\(\)\.extractall"
    r"|zipfile\.ZipFile\(\)\.extractall|shutil\.(copytree|unpack_archive|copyfile|copy2?)"
    r"|wget\.download|gdown\.download|torchvision\.datasets\.\w+|torchtext\.datasets\.\w+"
    r"|sentencepiece\.SentencePieceTrainer\.\w+|tokenizers\.Tokenizer\(\)\.train\w*)"
)
LONG_METHODS = set(
    """
    map save_to_disk train_from_iterator train_new_from_iterator push_to_hub prepare_data
    download_and_prepare extractall
    """.split()
)
LONG_WORDS = re.compile(
    r"_*(run_|do_)?(pre_?tokeni[sz]e|tokeni[sz]e|pre_?process|build|prepare|download|extract"
    r"|convert|evaluate|validate|benchmark|generate_samples)"
    r"(_(all|the|full|whole|corpus|dataset|datasets|data|index|indices|cache|shards|tokens|split"
    r"|splits|val|test|model|everything|features|examples|archive))*"
)


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per rank-0 block with long work that a collective of all ranks follows."""
    for module in program.examined:
        for node in module.of(ast.If):
            test = ranks.test(program, module, node.test)
            if test is None or test.polarity == "some":
                continue
            body = node.body if test.polarity == "main" else node.orelse
            long = next(
                (
                    item
                    for statement in body
                    for item in ast.walk(statement)
                    if isinstance(item, ast.Call) and _is_long(program, module, item)
                ),
                None,
            )
            if long is None:
                continue
            after = _waits_after(program, module, node)
            if after is not None and not _has_own_timeout(program, module):
                message = (
                    f"{module.source_of(long.func)}() runs on one rank, while the others wait in"
                    f" {after[0]} (line {after[1]}) with the default timeout."
                )
                yield RULE.finding(module, long, message)


def _is_long(program: Program, module: Module, call: ast.Call) -> bool:
    name = program.dotted(module, call.func)
    if LONG.fullmatch(name):
        if name.startswith("torchvision.datasets."):
            return program.values.keyword(module, call, "download", default=False) is True
        return not name.startswith(("subprocess", "os.", "shutil.copy")) or _is_heavy_command(
            module, call, name
        )
    if not isinstance(call.func, ast.Attribute):
        return (
            isinstance(call.func, ast.Name)
            and LONG_WORDS.fullmatch(call.func.id) is not None
            and _loops(program, program.called(module, call))
        )
    if call.func.attr == "map":
        return _is_data(program, module, call)
    if call.func.attr in LONG_METHODS:
        return (
            call.func.attr not in {"extractall", "push_to_hub"}
            and program.called(module, call) is None
        )
    return LONG_WORDS.fullmatch(call.func.attr) is not None and _loops(
        program, program.called(module, call)
    )


def _is_heavy_command(module: Module, call: ast.Call, name: str) -> bool:
    text = module.source_of(call, 300)
    return name == "shutil.copytree" or bool(
        re.search(r"wget|curl|rsync|tar |aws s3|gsutil|scp |unzip|git clone|azcopy", text)
    )


def _is_data(program: Program, module: Module, call: ast.Call) -> bool:
    """`.map` of a data set, not of an executor, by origin, options or name."""
    name = program.dotted(module, call.func)
    if name.startswith("datasets."):
        return True
    item = {keyword.arg for keyword in call.keywords}
    return (
        bool(item & {"num_proc", "batched", "remove_columns", "load_from_cache_file", "batch_size"})
        and argument(call, "chunksize") is None
    )


def _loops(program: Program, function: Function | None) -> bool:
    """A function with a telling name counts only with a loop or long work that can be seen."""
    if function is None:
        return False
    inner = list(ast.walk(function.node))
    if any(isinstance(item, ast.For | ast.While) for item in inner):
        return True
    return any(
        LONG.fullmatch(program.dotted(function.module, call.func))
        or method_called(call) in {"map", "save_to_disk"}
        for call in function.calls
    )


def _waits_after(program: Program, module: Module, node: ast.If) -> tuple[str, int] | None:
    """The first collective of all ranks after a block, before anything that would end the wait."""
    holder = module.function_of(node)
    calls = holder.calls if holder is not None else module.top_calls
    found: list[tuple[int, str]] = []
    for call in calls:
        if call.lineno <= (node.end_lineno or 0) or not flow.before(module, node, call):
            continue
        own = collective_of(program, module, call)
        bears = (
            [own]
            if own is not None
            else [reached.collective for reached in reached_by_call(program, module, call)]
        )
        kinds = [
            reached
            for reached in bears
            if reached.kind in {"barrier", "collective"}
            and not reached.group
            and reached.sure >= 0.7
        ]
        if kinds and not flow.guards(program, module, call):
            found.append((call.lineno, kinds[0].name))
    line, name = min(found, default=(0, ""))
    return (name, line) if line and line - (node.end_lineno or 0) <= 60 else None


def _has_own_timeout(program: Program, start: Module) -> bool:
    for module in job_modules(program, start):
        if "timeout" not in module.text:
            continue
        for call in module.of(ast.Call):
            name = program.dotted(module, call.func)
            if name in {
                "torch.distributed.init_process_group",
                "accelerate.InitProcessGroupKwargs",
                "accelerate.utils.InitProcessGroupKwargs",
            } and argument(call, "timeout"):
                return True
            if name.endswith(("TrainingArguments", "DDPStrategy", "FSDPStrategy")) and (
                argument(call, "ddp_timeout") or argument(call, "timeout")
            ):
                return True
    return False
