"""What all nodes must share: versions (without an import), variables, NCCL's settings files."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import sys
from typing import Dict, Iterator, List, Tuple

from _shared import kernel_files

PACKAGES = (
    "torch",
    "numpy",
    "triton",
    "transformers",
    "datasets",
    "accelerate",
    "deepspeed",
    "lightning",
    "torchvision",
    "flash-attn",
    "megatron-core",
    "transformer-engine",
)
NCCL_PACKAGES = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")
SHARED = re.compile(
    r"(?:NCCL|GLOO|TORCH|OMP|MKL|KMP|CUDA|PYTORCH|UCX|FI|OFI_NCCL|HF)_\w{1,80}|MASTER_(?:ADDR"
    r"|PORT)|WORLD_SIZE|LD_(?:PRELOAD|LIBRARY_PATH|AUDIT)|PYTHON(?:NOUSERSITE|PATH|HOME)"
    r"|CONDA_PREFIX|VIRTUAL_ENV|ROCM_PATH"
)
# They differ between nodes or ranks by right.
OF_ONE = re.compile(r"CUDA_VISIBLE_DEVICES|NCCL_HOSTID|TORCHELASTIC_\w+|NCCL_TOPO_DUMP_FILE\w*")
SECRET = re.compile(
    r"TOKEN|SECRET|PASS|CREDENTIAL|(?:API|ACCESS|PRIVATE|AUTH)_?KEY|COOKIE|AUTH", re.IGNORECASE
)
CAP = 400


def values(root: str) -> Iterator[Tuple[str, str]]:
    """Yield (name, value) as users describe an environment: version.torch, env.NCCL_DEBUG."""
    for name, version in versions().items():
        yield f"version.{name}", version
    for name in sorted(os.environ):
        if SHARED.fullmatch(name) and not OF_ONE.fullmatch(name) and not SECRET.search(name):
            yield f"env.{name}", shortened(os.environ[name])
    for place, path in enumerate(conf_files()):
        text = kernel_files.read(root, path)
        if text:
            lines = settings(text)
            yield (
                ("nccl.conf", "nccl.conf.user")[place],
                " ".join(f"{name}={value}" for name, value in sorted(lines.items()))[:CAP],
            )
            yield (
                ("nccl.conf.hash", "nccl.conf.user.hash")[place],
                hashlib.sha256(text.encode()).hexdigest()[:16],
            )


def shortened(text: str) -> str:
    """At most CAP characters; of a longer one its end counts too, by a hash."""
    if len(text) <= CAP:
        return text
    return f"{text[: CAP - 20]}… {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def versions() -> Dict[str, str]:
    """The versions in this Python, from metadata and torch/version.py."""
    from importlib import metadata

    found = {"python": platform.python_version(), "glibc": " ".join(platform.libc_ver()).strip()}
    for name in (*PACKAGES, *NCCL_PACKAGES):
        try:
            version = metadata.version(name)
        except Exception:  # not installed, or with metadata that nobody can read
            continue
        if version:
            found["nccl" if name in NCCL_PACKAGES else name] = version
    found.update(
        {
            f"torch.{name}" if name != "cuda" else "cuda": value
            for name, value in built_with().items()
        }
    )
    return {name: value for name, value in found.items() if value}


def built_with() -> Dict[str, str]:
    """`cuda`, `git_version` and `debug` of torch/version.py, which is read and not run."""
    for folder in sys.path:
        try:
            with open(os.path.join(folder or ".", "torch", "version.py"), encoding="utf-8") as file:
                body = ast.parse(file.read(65536)).body
        except (OSError, SyntaxError, ValueError):
            continue
        found: Dict[str, str] = {}
        for node in body:
            target = (
                node.target
                if isinstance(node, ast.AnnAssign)
                else node.targets[0]
                if isinstance(node, ast.Assign)
                else None
            )
            value = getattr(node, "value", None)
            if (
                isinstance(target, ast.Name)
                and target.id in ("cuda", "git_version")
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                found[target.id] = value.value
        return found
    return {}


def conf_files() -> List[str]:
    """NCCL's files in reading order: /etc/nccl.conf, NCCL_CONF_FILE or ~/.nccl.conf."""
    home = os.environ.get("HOME", "")
    user = os.environ.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else "")
    return ["/etc/nccl.conf", *([user] if user else [])]


def settings(text: str) -> Dict[str, str]:
    """The `NAME=value` lines of such a file; comments begin with #."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {
        name.strip(): value.strip()
        for name, equals, value in pairs
        if equals and not SECRET.search(name)
    }
