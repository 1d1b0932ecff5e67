"""Long work on one rank while the others wait in a barrier that ends with the default timeout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainprobe.lint import flow, ranks
from trainprobe.lint.calls import borne_by_call
from trainprobe.lint.collectives import collective_of
from trainprobe.lint.model import Finding, Fix, Rule
from trainprobe.lint.modules import Function, Module
from trainprobe.lint.program import Program
from trainprobe.lint.scenes import job
from trainprobe.lint.values import argument

ID = "rank0-long-task"
WHY = "The other ranks wait for it in a collective, and the process group gives up after its timeout: 10 minutes with NCCL and 30 with gloo unless one is set."
LONG = re.compile(
    r"(datasets\.load_dataset|datasets\.load_dataset_builder|huggingface_hub\.snapshot_download|huggingface_hub\.hf_hub_download|urllib\.request\.urlretrieve"
    r"|subprocess\.(run|check_call|check_output|call)|os\.system|tarfile\.open\(\)\.extractall|zipfile\.ZipFile\(\)\.extractall|shutil\.(copytree|unpack_archive|copyfile|copy2?)"
    r"|wget\.download|gdown\.download|torchvision\.datasets\.\w+|torchtext\.datasets\.\w+|sentencepiece\.SentencePieceTrainer\.\w+|tokenizers\.Tokenizer\(\)\.train\w*)"
)
LONG_METHODS = {"map", "save_to_disk", "train_from_iterator", "train_new_from_iterator", "push_to_hub", "prepare_data", "download_and_prepare", "extractall"}
LONG_WORDS = re.compile(
    r"_*(run_|do_)?(pre_?tokeni[sz]e|tokeni[sz]e|pre_?process|build|prepare|download|extract|convert|evaluate|validate|benchmark|generate_samples)"
    r"(_(all|the|full|whole|corpus|dataset|datasets|data|index|indices|cache|shards|tokens|split|splits|val|test|model|everything|features|examples|archive))*"
)
DO = "Do it before the ranks start, or set init_process_group(timeout=timedelta(hours=…)) to more than it takes, or let each rank do its share."


def find(program: Program) -> Iterator[Finding]:
    """Yield one finding per rank-0 block with long work that a collective of all ranks follows."""
    for module in program.examined:
        for node in module.of(ast.If):
            test = ranks.test(program, module, node.test)
            if test is None or test.polarity == "some":
                continue
            body = node.body if test.polarity == "main" else node.orelse
            long = next((one for statement in body for one in ast.walk(statement) if isinstance(one, ast.Call) and _is_long(program, module, one)), None)
            if long is None:
                continue
            after = _waits_after(program, module, node)
            if after is not None and not _has_own_timeout(program, module):
                says = f"{module.source_of(long.func)}() runs on one rank, while the others wait in {after[0]} (line {after[1]}) with the default timeout."
                yield program.finding(ID, ID, module, long, says=says, why=WHY, confidence=_sure(program, module, long), fix=Fix(DO))


def _sure(program: Program, module: Module, call: ast.Call) -> float:
    name = program.dotted(module, call.func)
    return 0.6 if (LONG.fullmatch(name) and not name.startswith(("subprocess", "os.", "shutil"))) or name.endswith(".map") else 0.52


def _is_long(program: Program, module: Module, call: ast.Call) -> bool:
    name = program.dotted(module, call.func)
    if LONG.fullmatch(name):
        if name.startswith("torchvision.datasets."):
            return program.values.keyword(module, call, "download", default=False) is True
        return not name.startswith(("subprocess", "os.", "shutil.copy")) or _is_heavy_command(module, call, name)
    if not isinstance(call.func, ast.Attribute):
        return isinstance(call.func, ast.Name) and LONG_WORDS.fullmatch(call.func.id) is not None and _loops(program, program.called(module, call))
    if call.func.attr == "map":
        return _is_data(program, module, call)
    if call.func.attr in LONG_METHODS:
        return call.func.attr not in {"extractall", "push_to_hub"} and program.called(module, call) is None
    return LONG_WORDS.fullmatch(call.func.attr) is not None and _loops(program, program.called(module, call))


def _is_heavy_command(module: Module, call: ast.Call, name: str) -> bool:
    text = module.source_of(call, 300)
    return name == "shutil.copytree" or bool(re.search(r"wget|curl|rsync|tar |aws s3|gsutil|scp |unzip|git clone|azcopy", text))


def _is_data(program: Program, module: Module, call: ast.Call) -> bool:
    """`.map` of a data set, not of an executor: by where it comes from, by its options or by its name."""
    name = program.dotted(module, call.func)
    if name.startswith("datasets."):
        return True
    given = {word.arg for word in call.keywords}
    return bool(given & {"num_proc", "batched", "remove_columns", "load_from_cache_file", "batch_size"}) and argument(call, "chunksize") is None


def _loops(program: Program, function: Function | None) -> bool:
    """A project's function with a telling name counts only where it has a loop or long work of its own; in files not seen it does not count."""
    if function is None:
        return False
    inner = list(ast.walk(function.node))
    if any(isinstance(one, ast.For | ast.While) for one in inner):
        return True
    return any(LONG.fullmatch(program.dotted(function.module, one.func)) or _method(one) in {"map", "save_to_disk"} for one in function.calls)


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _waits_after(program: Program, module: Module, node: ast.If) -> tuple[str, int] | None:
    """The first collective of all ranks after a block, before anything that would end the wait."""
    holder = module.function_of(node)
    calls = holder.calls if holder is not None else module.top_calls
    found: list[tuple[int, str]] = []
    for call in calls:
        if call.lineno <= (node.end_lineno or 0) or not flow.before(module, node, call):
            continue
        own = collective_of(program, module, call)
        bears = [own] if own is not None else [one.collective for one in borne_by_call(program, module, call)]
        kinds = [one for one in bears if one.kind in {"barrier", "collective"} and not one.group and one.sure >= 0.7]
        if kinds and not flow.guards(program, module, call):
            found.append((call.lineno, kinds[0].name))
    line, name = min(found, default=(0, ""))
    return (name, line) if line and line - (node.end_lineno or 0) <= 60 else None


def _has_own_timeout(program: Program, start: Module) -> bool:
    for module in job(program, start):
        if "timeout" not in module.text:
            continue
        for call in module.of(ast.Call):
            name = program.dotted(module, call.func)
            if name in {"torch.distributed.init_process_group", "accelerate.InitProcessGroupKwargs", "accelerate.utils.InitProcessGroupKwargs"} and argument(
                call, "timeout"
            ):
                return True
            if name.endswith(("TrainingArguments", "DDPStrategy", "FSDPStrategy")) and (argument(call, "ddp_timeout") or argument(call, "timeout")):
                return True
    return False


RULE = Rule(ID, ID, "long work on one rank before a collective with the default timeout", WHY, 0.6, find)
