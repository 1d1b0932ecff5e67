"""Reports on a job's environment that a user names or that stand among the logs: variables, limits,
versions, shared memory, interfaces and GPUs, recognised line by line by their form. Also the size
of the launch from `--nodes` and `--gpus`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence

from trainprobe.case import Case
from trainprobe.logtext.plain import plain
from trainprobe.model.evidence import Evidence
from trainprobe.model.subjects import Subject
from trainprobe.regular_files import read_regular_file
from trainprobe.secret_names import looks_secret
from trainprobe.targets.environment import SCHEMA, is_recordable

VALUE_CAP = 400
VALUES_CAP = 3000
LINES_CAP = 50_000
LINE_CAP = 4000
FILE_CAP_BYTES = 8 * 2**20
STDIN = "-"
FORMS = (
    "--env reads an environment dump (env), ulimit -a, python -m torch.utils.collect_env, pip list,"
    " df, ip addr, nvidia-smi, or what trainprobe collect-env wrote."
)
Values = dict[str, str]
# Shapes of lines without any value: the lines of a training run differ in nothing but digits.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_SHAPE_CAP = 200
_SHAPES_CAP = 5000
_EMPTY_SHAPES: set[bytes] = set()
_ENV = re.compile(
    r"^(?:\s{0,8}(?:export |declare -x |set |ENV |-"
    r" )\s{0,2})?[\"']?([A-Za-z_][A-Za-z0-9_]{1,100})[\"']?=[\"']?(.{0,4000}?)[\"']?\s{0,4};?$"
)
_ENV_COLON = re.compile(
    r"^\s{0,12}[\"']?([A-Z][A-Z0-9_]{2,100})[\"']?\s?[:=]\s?[\"']?([^\"']{0,2000}?)[\"']?,?$"
)

_LIMITS = {
    label: f"limit.{name}"
    for name, labels in {
        "nofile": "open files|file descriptors|max open files|nofile|nofiles",
        "memlock_bytes": "max locked memory|locked-in-memory size|locked memory|memlock",
        "nproc": "max user processes|processes|max processes|nproc",
        "as_bytes": "virtual memory|address space|max address space|as|vmemory",
        "stack_bytes": "stack size|max stack size|stack",
    }.items()
    for label in labels.split("|")
}
_ULIMIT = re.compile(
    r"^([a-z][a-z -]{2,40}?)\s{1,30}\((?:(kbytes|blocks|bytes|512 bytes),"
    r" )?-[a-zA-Z]\)\s{1,8}(unlimited|\d{1,20})\s{0,4}$"
)
_ULIMIT_DASH = re.compile(
    r"^-[a-zA-Z]: ([a-z][a-z -]{2,40}?)(?:"
    r" \((kbytes|blocks|bytes)\))?\s{1,30}(unlimited|\d{1,20})\s{0,4}$"
)
_ULIMIT_DASH2 = re.compile(
    r"^([a-z][a-z -]{2,40}?)(?:\((kbytes|blocks|bytes)\))?\s{1,30}(unlimited|\d{1,20})\s{0,4}$"
)
_PROC_LIMITS = re.compile(
    r"^(Max [a-z"
    r" ]{3,30}?)\s{2,40}(unlimited|\d{1,20})\s{1,30}(?:unlimited|\d{1,20})(?:\s{1,30}(?:bytes"
    r"|files|processes|seconds|us|locks|signals))?\s{0,20}$"
)
_PRLIMIT = re.compile(
    r"^([A-Z]{2,10})\s{1,12}[a-z][\w"
    r" ./()-]{3,60}?\s{2,40}(unlimited|\d{1,20})\s{1,30}(?:unlimited|\d{1,20})"
)
_ULIMIT_SHORT = re.compile(
    r"^(?:\$ |\+ |# )?ulimit"
    r" -(?:[SH])?([nlusv])(?:\s{0,4}[:=]|\s{1,4}(?:->|=>))?\s{1,4}(unlimited|\d{1,20})$"
)
_SHORT = {
    "n": ("limit.nofile", 1),
    "l": ("limit.memlock_bytes", 1024),
    "u": ("limit.nproc", 1),
    "s": ("limit.stack_bytes", 1024),
    "v": ("limit.as_bytes", 1024),
}

_DF = re.compile(
    r"^\S{1,200}\s{1,60}(?:[a-z0-9]{2,12}\s{1,12})?([\d.]{1,16}[KMGTP]?i?)\s{1,30}([\d.]{1,16}[KMGTP]?i?)\s{1,30}([\d.]{1,16}[KMGTP]?i?)\s{1,30}\d{1,3}%\s{1,8}(/\S{0,200})\s{0,4}$"
)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE = re.compile(r"([\d.]{1,16})\s?([kKMGTP]?)(?:i?[bB])?")
_FREE = re.compile(r"^Mem:\s{1,20}([\d.]{1,16})([KMGT]?i?)B?\s")
_INTERFACE = re.compile(r"^(?:\d{1,4}: )?([A-Za-z][\w.-]{0,30})(?:@\w{1,30})?:? (?:<|flags=)")
_ADDRESS = re.compile(r"^\s{1,16}inet (?:addr:)?((?:\d{1,3}\.){3}\d{1,3})")
_BRIEF = re.compile(
    r"^([A-Za-z][\w.-]{0,30})(?:@\w{1,30})?\s{1,20}(?:UP|DOWN"
    r"|UNKNOWN)\s{1,20}((?:\d{1,3}\.){3}\d{1,3})"
)
_GPU_LIST = re.compile(r"^GPU (\d{1,3}): (.{2,80}?)(?: \(UUID: .{0,80})?$")
_SMI = re.compile(r"Driver Version: ([\d.]{3,20})(?:.{0,60}CUDA (?:UMD )?Version: ([\d.]{1,10}))?")
_SMI_GPU = re.compile(
    r"^\|\s{1,4}(\d{1,3})\s{1,4}((?:NVIDIA|Tesla|Quadro|GeForce|GRID|A\d{2}|H\d{2}|RTX)[\w"
    r" .()-]{0,40}?)\s{2,20}(?:On|Off|N/A)?\s{0,20}\|"
)
_PIP = re.compile(
    r"^(?:\[(?:pip3?|conda)\]"
    r" )?([A-Za-z][\w.-]{0,80}?)(?:=="
    r"|\s{1,60})(\d{1,4}(?:\.\w{1,20}){1,6}(?:[+.!-]\w[\w.]{0,40})?)(?:\s.{0,120})?$"
)
_LABEL = re.compile(
    r"^(?:- )?[`'\"]?([A-Za-z][\w ()?./+-]{1,60}?)[`'\"]?(?: version)?(?: \(GPU\?\))?\s?(?::|"
    r" \.{3,60})\s{1,8}(.{1,300}?)\s{0,8}$"
)
# The labels of torch.utils.collect_env, transformers and accelerate `env`, DeepSpeed's ds_report,
# lscpu and of people.
# `_LABEL` takes " version" off a label.
_LABELS = {
    label: name
    for name, labels in {
        "version.torch": "pytorch|torch",
        "version.cuda": "cuda used to build pytorch|torch cuda",
        "version.cuda_toolkit": "cuda runtime",
        "version.driver": "nvidia driver|driver",
        "version.pytorch-lightning": "pytorch lightning",
        "version.hip": "hip runtime",
        "version.rocm": "rocm used to build pytorch",
        "version.deepspeed": "deepspeed info|deepspeed",
        **{
            f"version.{name}": name
            for name in (
                *("nvcc", "python", "libc", "nccl", "cudnn", "numpy", "triton", "xformers", "peft"),
                *("transformers", "accelerate", "datasets", "tokenizers", "safetensors", "gcc"),
                *("huggingface_hub", "lightning", "ray"),
            )
        },
        "os": "os",
        "platform": "platform|python platform",
        "kernel": "kernel",
        "cuda_available": "is cuda available",
        "cpus": "cpu(s)|cpus|cpu count",
        "memory.total_bytes": "system ram",
        "shm.size_bytes": "shared memory (/dev/shm) size",
        "gpu.0": "gpu type",
        "world_size": "world size|world_size|num_processes|num processes",
        "nodes": "num_machines|num machines",
    }.items()
    for label in labels.split("|")
}
_UNAME = re.compile(r"^Linux \S{1,100} (\d[\w.+-]{2,60}) #")
_EMPTY = re.compile(
    r"(?:n/?a|none|could not collect|unknown|not installed.{0,20}|null|unavailable)$", re.IGNORECASE
)
# Packages that matter; others would only fill the case.
_PACKAGES = re.compile(
    r"torch\w{0,20}|nvidia[\w-]{0,40}|transformers|datasets|accelerate|deepspeed"
    r"|(?:pytorch[-_])?lightning(?:[-_]\w{1,20})?|numpy|scipy|pandas|pyarrow|triton|xformers"
    r"|flash[-_]attn|peft|trl|bitsandbytes|safetensors|"
    r"tokenizers|huggingface[-_]hub|megatron[-_]core|nemo[-_]\w{1,20}|apex|transformer[-_]engine"
    r"|fairseq\d?|fairscale|timm|mmcv\w{0,10}|mmengine|mmdet|detectron2|vllm|ray|wandb|mlflow"
    r"|tensorboard|fsspec|filelock|"
    r"protobuf|setuptools|ninja|cuda[-_]\w{1,20}|cupy\w{0,20}|jax|tensorflow|horovod|composer"
    r"|mosaicml|webdataset|opencv[-_]\w{1,30}|pillow|psutil|py-spy|hydra-core|omegaconf"
    r"|sentencepiece|einops|urllib3|requests|aiohttp",
    re.IGNORECASE,
)


def read_environment_report(text: str) -> Values:
    """Return {name: value} with the names of facts/given.py. Sizes are in bytes; a limit may be
    `unlimited`. The last of several values counts, as in a shell. Never raises.
    """
    from_json = _from_json(text)
    if from_json is not None:
        return from_json
    found: Values = {}
    interface = ""
    lines = text.splitlines()[:LINES_CAP]
    shapes = (
        "\n".join(lines).encode("utf-8", "replace").translate(_DIGITS).split(b"\n") if lines else []
    )
    if _EMPTY_SHAPES.issuperset(shapes):
        return {}
    for line, shape in zip(lines, shapes, strict=True):
        if shape in _EMPTY_SHAPES:
            continue
        raw = line[:LINE_CAP].rstrip()
        if not raw.strip() or len(found) >= VALUES_CAP:
            continue
        named = _INTERFACE.match(raw)
        if named is not None:
            interface = named.group(1)
        address = _ADDRESS.match(raw)
        if address is not None and interface:
            found.setdefault(f"interface.{interface}", address.group(1))
            continue
        for read in _READERS:
            values = read(raw)
            if values:
                found.update({name: value[:VALUE_CAP] for name, value in values.items()})
                break
        else:
            if named is None and address is None and len(shape) <= _SHAPE_CAP:
                if len(_EMPTY_SHAPES) >= _SHAPES_CAP:
                    _EMPTY_SHAPES.clear()
                _EMPTY_SHAPES.add(shape)
    return _counted(found)


def _counted(found: Values) -> Values:
    """Add the number of GPUs, nodes and tasks that the other values imply."""
    gpus = [name for name in found if re.fullmatch(r"gpu\.\d{1,3}", name)]
    if gpus:
        found.setdefault("gpus_per_node", str(len(gpus)))
    for name, of in (
        ("world_size", "env.WORLD_SIZE"),
        ("nodes", "env.SLURM_NNODES"),
        ("nodes", "env.SLURM_JOB_NUM_NODES"),
        ("gpus_per_node", "env.SLURM_GPUS_ON_NODE"),
        ("world_size", "env.SLURM_NTASKS"),
    ):
        if found.get(of, "").isdecimal():
            found.setdefault(name, found[of])
    return found


def _from_json(text: str) -> Values | None:
    """`trainprobe collect-env`, or a plain object of environment variables."""
    if text.lstrip("\ufeff \t\r\n")[:1] != "{":
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if data.get("schema") == SCHEMA:
        values = data.get("values")
        pairs = values.items() if isinstance(values, dict) else ()
        return {
            str(name)[:200]: str(value)[:VALUE_CAP]
            for name, value in pairs
            if isinstance(value, (str, int, float)) and _may_stand(str(name))
        }
    return _counted(
        {
            f"env.{name}": str(value)[:VALUE_CAP]
            for name, value in data.items()
            if isinstance(value, (str, int, float)) and is_recordable(str(name))
        }
    )


def _may_stand(name: str) -> bool:
    return is_recordable(name[4:]) if name.startswith("env.") else not looks_secret(name)


def _environment(line: str) -> Values:
    match = _ENV.match(line) or _ENV_COLON.match(line)
    if match is None or "==" in line[: match.end(1) + 3]:
        return {}
    name = match.group(1)
    return {f"env.{name}": match.group(2)} if is_recordable(name) else {}


def _limit(line: str) -> Values:
    short = _ULIMIT_SHORT.match(line)
    if short is not None:
        name, unit = _SHORT[short.group(1)]
        return {name: _times(short.group(2), unit)}
    match = _ULIMIT.match(line) or _ULIMIT_DASH.match(line) or _ULIMIT_DASH2.match(line)
    if match is not None:
        named = _LIMITS.get(match.group(1).strip())
        if named is None:
            return {}
        unit = {"kbytes": 1024, "blocks": 512, "512 bytes": 512}.get(match.group(2) or "", 1)
        if unit == 1 and named.endswith("_bytes") and match.group(2) is None:
            unit = 1024
        return {named: _times(match.group(3), unit)}
    match = _PROC_LIMITS.match(line) or _PRLIMIT.match(line)
    named = _LIMITS.get(match.group(1).strip().lower()) if match is not None else None
    return {named: match.group(2)} if match is not None and named is not None else {}


def _times(amount: str, unit: int) -> str:
    return amount if amount == "unlimited" else str(int(amount) * unit)


def _shared_memory(line: str) -> Values:
    match = _DF.match(line)
    if match is None or match.group(4).rstrip("/") != "/dev/shm":  # noqa: S108 - the name of a mount in a text
        return {}
    size, free = (_df_bytes(match.group(place)) for place in (1, 3))
    return {"shm.size_bytes": size, "shm.free_bytes": free} if size and free else {}


def _df_bytes(text: str) -> str:
    amount, unit = text.rstrip("i"), text.rstrip("i")[-1:]
    if unit in _UNITS and unit:
        return _bytes(amount[:-1] or "0", _UNITS[unit])
    return _bytes(amount, 1024)  # df without -h counts in kilobytes


def _bytes(amount: str, unit: int) -> str:
    """`1.5` times the unit; "" for what only looks like a number, such as `1.2.3`."""
    try:
        return str(int(float(amount) * unit))
    except ValueError:
        return ""


def _machine(line: str) -> Values:
    if match := _FREE.match(line):
        unit = match.group(2).rstrip("i")
        total = _bytes(match.group(1), _UNITS[unit] if unit else 1024)
        return {"memory.total_bytes": total} if total else {}
    if match := _UNAME.match(line):
        return {"kernel": match.group(1)}
    if match := _BRIEF.match(line):
        return {f"interface.{match.group(1)}": match.group(2)}
    return {}


def _gpus(line: str) -> Values:
    if match := _GPU_LIST.match(line.strip()):
        return {f"gpu.{match.group(1)}": match.group(2)}
    if match := _SMI.search(line):
        return {
            "version.driver": match.group(1),
            **({"version.cuda_driver": match.group(2)} if match.group(2) else {}),
        }
    if match := _SMI_GPU.match(line):
        return {f"gpu.{match.group(1)}": match.group(2).strip()}
    return {}


def _labelled(line: str) -> Values:
    match = _LABEL.match(line)
    name = _LABELS.get(match.group(1).strip().lower()) if match is not None else None
    if match is None or name is None or _EMPTY.match(match.group(2).strip()):
        return {}
    value = match.group(2).strip()
    if name.startswith("version."):
        version = re.search(
            r"\d{1,4}(?:\.\w{1,20}){1,6}(?:[+-]\w[\w.]{0,30})?|(?<![\w.])\d{1,4}$", value
        )
        if version is None or version.start() > 40:
            return {}
        value = version.group(0)
    elif name.endswith("_bytes"):
        size = _SIZE.match(value)
        if size is None:
            return {}
        value = _bytes(size.group(1), _UNITS[size.group(2).upper()])
    elif name in ("cpus", "world_size", "nodes") and not value.isdecimal():
        return {}
    return {name: value} if value else {}


_OURS = re.compile(
    r"^((?:env|limit|shm|memory|interface|version|gpu|rdma)\.[\w.-]{1,100}|cpus|cpu_quota"
    r"|pids\.max|kernel|platform|gpus_per_node|nodes|world_size)"
    r" {2,60}(\S.{0,400}?)$"
)
# The same names as somebody types them: only those that no program prints by chance.
_OURS_TYPED = re.compile(
    r"^((?:limit|shm|memory|interface|version|gpu|rdma)\.[\w.-]{1,100}|cpu_quota|pids\.max"
    r"|gpus_per_node)"
    r" {0,4}[=:] {0,4}[\"']?(\S.{0,400}?)[\"']?$"
)


def _ours(line: str) -> Values:
    """The text of `trainprobe collect-env`, or `memory.limit_bytes=64GiB` by hand."""
    match = _OURS.match(line)
    if match is None and (typed := _OURS_TYPED.match(line)) is not None:
        name, value = typed.groups()
        size = _SIZE.fullmatch(value) if name.endswith("_bytes") else None
        value = _bytes(size.group(1), _UNITS[size.group(2).upper()]) if size is not None else value
        return {name: value} if value and _may_stand(name) else {}
    if match is None or not _may_stand(match.group(1)):
        return {}
    return {match.group(1): match.group(2)}


def _package(line: str) -> Values:
    match = _PIP.match(line.strip())
    if match is None or not _PACKAGES.fullmatch(match.group(1)):
        return {}
    name, version = match.group(1).lower().replace("_", "-"), match.group(2)
    values = {f"version.{name}": version}
    if name.startswith("nvidia-nccl-cu"):
        values["version.nccl"] = version
    elif name == "torch" and "+cu" in version:
        digits = version.partition("+cu")[2]
        if digits.isdecimal() and len(digits) == 3:
            values["version.cuda"] = f"{digits[:2]}.{digits[2]}"
    return values


_READERS: tuple[Callable[[str], Values], ...] = (
    _ours,
    _limit,
    _shared_memory,
    _gpus,
    _labelled,
    _package,
    _environment,
    _machine,
)


def record_launch_environment(
    case: Case, env_files: Sequence[str], nodes: int | None, gpus: int | None
) -> None:
    """Record one `given` for each file, and one for the size of the launch.

    Data: {source, host, path, values: {name: value}} with the names of facts/given.py. A file that
    cannot be read, or holds no such value, is a look that failed.
    """
    for path in env_files:
        try:
            record_environment_report(case, path, _text_of(path), "env-file")
        except (OSError, ValueError) as error:
            why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            data = {"source": "env-file", "host": "", "path": path, "values": {}}
            name, reason = os.path.basename(path), f"{path} {why}"
            case.add(
                "given", cell="job", source=name, outcome="unavailable", reason=reason, data=data
            )
    sizes = {"nodes": nodes, "gpus_per_node": gpus, "world_size": (nodes or 0) * (gpus or 0)}
    values = {name: str(size) for name, size in sizes.items() if size}
    if values:
        data = {"source": "command-line", "host": "", "values": values}
        case.add("given", cell="job", source="command line", data=data)


def record_environment_report(
    case: Case, path: str, text: str, source: str, *, cell: str = "job"
) -> Evidence:
    """Record one `given` with the values in a text; `unavailable` where there are none."""
    values = read_environment_report(
        "\n".join(plain(line) for line in text.splitlines()) if "\x1b" in text else text
    )
    made_by_us = f'"{SCHEMA}"' in text[:400]
    host = _host_in(text) if made_by_us else ""
    return case.add(
        "given",
        subject=Subject("host", host=host) if host else Subject("job"),
        cell=cell,
        source=os.path.basename(path),
        outcome="ok" if values else "unavailable",
        reason="" if values else f"{path} says nothing about the environment of a job. {FORMS}",
        data={
            "source": "collect-env" if made_by_us else source,
            "host": host,
            "path": path,
            "values": values,
        },
    )


def _host_in(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    host = data.get("host") if isinstance(data, dict) else None
    return host[:200] if isinstance(host, str) else ""


def _text_of(path: str) -> str:
    content = (
        sys.stdin.buffer.read(FILE_CAP_BYTES)
        if path == STDIN
        else read_regular_file(path, FILE_CAP_BYTES)
    )
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    return content.replace(b"\0", b"\n").decode("utf-8", "replace")
