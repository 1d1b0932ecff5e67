"""The versions of the packages that matter, in the Python that runs this: `python
versions_child.py NAME…` prints one JSON object. Nothing is imported but the standard library.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import sys
from typing import Dict, Optional, Sequence

PACKAGES = tuple(
    """
    torch torchvision torchaudio torchdata torchtitan transformers datasets accelerate deepspeed
    lightning pytorch-lightning numpy scipy pandas pyarrow triton xformers flash-attn peft trl
    bitsandbytes safetensors tokenizers huggingface-hub megatron-core apex transformer-engine
    fairseq fairscale timm mmcv mmengine detectron2 vllm ray wandb mlflow tensorboard fsspec
    filelock protobuf setuptools ninja composer webdataset nvidia-nccl-cu11 nvidia-nccl-cu12
    nvidia-nccl-cu13 nvidia-cudnn-cu12 nvidia-cudnn-cu13 nvidia-cublas-cu12
    nvidia-cuda-runtime-cu12 nvidia-nvshmem-cu12
    """.split()
)


def versions(packages: Sequence[str] = PACKAGES) -> Dict[str, str]:
    """{python, torch, cuda, nccl, …} as far as metadata tells without an import."""
    from importlib import metadata

    found = {"python": platform.python_version()}
    for name in packages:
        try:
            version: Optional[str] = metadata.version(name)
        except Exception:  # noqa: BLE001 - not installed, or with metadata that nobody can read
            continue
        if not version:
            continue
        found[name] = version
        if name.startswith("nvidia-nccl-"):
            found["nccl"] = version
    if "torch" in found:
        cuda = _cuda_of_torch()
        if cuda:
            found["cuda"] = cuda
    return found


def _cuda_of_torch() -> str:
    """The CUDA version that torch was built for; torch/version.py is read, not run."""
    for folder in sys.path:
        try:
            with open(os.path.join(folder or ".", "torch", "version.py"), encoding="utf-8") as file:
                body = ast.parse(file.read(65536)).body
        except (OSError, SyntaxError, ValueError):
            continue
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
                and target.id == "cuda"
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                return value.value
        return ""
    return ""


if __name__ == "__main__":
    # Our own folder is first on the path of a program; it holds modules whose names must not hide
    # others.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    sys.stdout.write(json.dumps(versions()) + "\n")
