"""A conflict of versions is told as a pair: who looks for what, where, and what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainprobe.pipelines import explain

SITE = "/opt/venv/lib/python3.11/site-packages"


def raised(message: str, *files: str) -> str:
    """A traceback through `train.py` and these installed files."""
    frames = "".join(f'  File "{SITE}/{file}", line 7, in <module>\n    x\n' for file in files)
    begin = 'Traceback (most recent call last):\n  File "/home/ann/train.py", line 3, in <module>\n'
    return f"{begin}    import alib\n{frames}{message}\n"


PAIRS = [
    (
        "NumPy 2.1.3 as it may crash. To support both 1.x and 2.x\n"
        + raised("ImportError: numpy.core.multiarray failed to import", "cv2/__init__.py"),
        "library-version-conflict",
        "opencv-python was built for NumPy 1 and meets NumPy 2.1.3",
        "'numpy<2'",
    ),
    (
        raised(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA"
            " major versions. PyTorch has CUDA Version=12.1 and torchvision has CUDA Version=11.8."
            " Please reinstall",
            "torchvision/extension.py",
        ),
        "abi-mismatch",
        "torchvision was built for CUDA 11.8 and torch for CUDA 12.1",
        "torch torchvision",
    ),
    (
        raised(
            "ImportError: tokenizers>=0.21,<0.22 is required for a normal functioning of this"
            " module, but found tokenizers==0.20.1.",
            "transformers/utils/versions.py",
        ),
        "library-version-conflict",
        "transformers needs tokenizers>=0.21,<0.22 and finds tokenizers 0.20.1",
        "'tokenizers>=0.21,<0.22'",
    ),
    (
        raised(
            f"ImportError: cannot import name 'ACache' from 'transformers' ({SITE}/transformers/"
            "__init__.py)",
            "peft/peft_model.py",
        ),
        "library-version-conflict",
        "peft looks for ACache in transformers, and the installed transformers does not have it",
        "-U peft transformers",
    ),
    (
        raised("ModuleNotFoundError: No module named 'triton.ops'", "bitsandbytes/nn.py"),
        "library-version-conflict",
        "bitsandbytes looks for ops in triton, and the installed triton does not have it",
        "-U bitsandbytes triton",
    ),
    (
        raised(
            "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep'",
            "transformers/trainer.py",
        ),
        "library-version-conflict",
        "transformers passes keep to Accelerator of accelerate",
        "-U transformers accelerate",
    ),
    (
        raised(
            f"ImportError: {SITE}/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined"
            " symbol: _ZN3c105ErrorC2ENS_14SourceLocationE",
            "flash_attn/flash_attn_interface.py",
        ),
        "abi-mismatch",
        "flash-attn was built for another torch than the installed one",
        "--no-deps flash-attn",
    ),
    (
        "PyTorch version: 2.6.0+cu124\n"
        + raised(
            f"OSError: {SITE}/torchaudio/lib/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd"
        ),
        "abi-mismatch",
        "torchaudio was built for another torch than the installed torch 2.6.0",
        "torch torchvision torchaudio",
    ),
    (
        raised(
            f"ImportError: {SITE}/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: symbol"
            " __nvJitLinkComplete_12_4, version libnvJitLink.so.12 not defined in file"
            " libnvJitLink.so.12 with link time reference",
            "torch/__init__.py",
        ),
        "abi-mismatch",
        "libcusparse.so.12 was built for another nvJitLink than the one that is loaded",
        "env -u LD_LIBRARY_PATH",
    ),
    (
        raised(
            "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found"
            f" (required by {SITE}/deepspeed/ops/cpu_adam.so)"
        ),
        "abi-mismatch",
        "deepspeed needs GLIBCXX_3.4.32, which the libstdc++.so.6 of this host lacks",
        "libstdcxx-ng",
    ),
    (
        raised(
            "google.protobuf.runtime_version.VersionError: Detected incompatible Protobuf"
            " Gencode/Runtime versions when loading wandb/proto/base.proto: gencode 5.29.0 runtime"
            " 4.25.3. Runtime version cannot be older than the linked gencode version.",
            "wandb/__init__.py",
            "google/protobuf/runtime_version.py",
        ),
        "library-version-conflict",
        "wandb was generated for protobuf 5.29.0 and finds protobuf 4.25.3",
        "'protobuf>=5.29.0'",
    ),
    (
        raised(
            "TypeError: Descriptors cannot be created directly.",
            "tensorboard/compat/proto/tensor_pb2.py",
            "google/protobuf/descriptor.py",
        ),
        "library-version-conflict",
        "tensorboard was generated for a protobuf before 4 and finds a newer one",
        "'protobuf<=3.20.3'",
    ),
    (
        raised(
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0)"
            " but found runtime version (8, 9, 7).",
            "torch/backends/cudnn/__init__.py",
        ),
        "library-version-conflict",
        "torch was built against cuDNN 9.1.0 and loads cuDNN 8.9.7",
        "env -u LD_LIBRARY_PATH",
    ),
    (
        "    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.4.0+cu118)\n"
        + raised(
            "NotImplementedError: No operator found for `memory_efficient_attention_forward`:\n"
            "    xFormers wasn't build with CUDA support",
            "xformers/ops/fmha/dispatch.py",
        ),
        "library-version-conflict",
        "xformers was built for PyTorch 2.3.0+cu121 and finds PyTorch 2.4.0+cu118",
        "xformers==VERSION",
    ),
    (
        raised(
            f"RuntimeError: Configured CUDA binary not found at {SITE}/bitsandbytes/"
            "libbitsandbytes_cuda129.so",
            "bitsandbytes/cextension.py",
        ),
        "library-version-conflict",
        "bitsandbytes brings no build for CUDA 12.9, which the installed torch is of",
        "-U bitsandbytes",
    ),
    (
        raised(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "torch/cuda/__init__.py",
        ),
        "driver-too-old",
        "The NVIDIA driver knows CUDA 11.4 at most and torch was built for a newer one",
        "",
    ),
    (
        raised("TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'"),
        "library-version-conflict",
        "The program joins types by `|`, which needs Python 3.10",
        "python>=3.10",
    ),
    (
        "ERROR: Package 'vllm' requires a different Python: 3.8.10 not in '<3.13,>=3.9'\n",
        "library-version-conflict",
        "vllm needs Python <3.13,>=3.9 and finds 3.8.10",
        "<3.13,>=3.9",
    ),
]


@pytest.mark.parametrize(("text", "cause", "says", "command"), PAIRS, ids=[row[2] for row in PAIRS])
def test_the_pair_and_what_to_install_are_read_out_of_the_message(
    text: str, cause: str, says: str, command: str, tmp_path: Path
) -> None:
    log = tmp_path / "job.log"
    log.write_text(text, encoding="utf-8")
    first = explain(str(log)).causes[0]

    assert (first.id, first.named) == (cause, True)
    assert first.summary.startswith(says)
    steps = [step for fix in first.fixes for step in fix.steps]
    assert any(command in step for step in steps), steps


@pytest.mark.parametrize(
    "warned",
    [
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.3 as it may crash.",
        (
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
            "    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.4.0+cu118)"
        ),
        "torchaudio 2.3.0 requires torch==2.3.0, but you have torch 2.4.0 which is incompatible.",
    ],
)
def test_a_training_that_went_on_after_the_warning_is_healthy(warned: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    steps = "".join(f"step {step} loss {3 / step:.3f}\n" for step in range(1, 6))
    log.write_text(f"{warned}\n{steps}training finished\n", encoding="utf-8")

    assert explain(str(log)).verdict == "healthy"
