"""The two packages that do not fit each other, out of what they say."""

from __future__ import annotations

import pytest

from trainprobe.logtext.version_pairs import version_pair


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may crash.",
            "a module built for NumPy 1.x does not fit NumPy 2.1.0",
        ),
        (
            "ImportError: tokenizers>=0.14,<0.19 is required for a normal functioning of this module, but found tokenizers==0.20.1.",
            "tokenizers 0.20.1 does not fit pack, which asks for tokenizers>=0.14,<0.19",
        ),
        (
            "ERROR: gluons 1.2.0 requires protobuf<4,>=3.20, but you have protobuf 5.1.0 which is incompatible.",
            "protobuf 5.1.0 does not fit gluons 1.2.0, which asks for protobuf<4,>=3.20",
        ),
        (
            "PyTorch has CUDA Version=11.8 and torchvision has CUDA Version=12.1. Please reinstall",
            "torchvision for CUDA 12.1 does not fit torch for CUDA 11.8",
        ),
        (
            "The detected CUDA version (12.4) mismatches the version that was used to compilePyTorch (11.8).",
            "CUDA 12.4 does not fit torch for CUDA 11.8",
        ),
        (
            "ImportError: /e/site-packages/flash_attn_2_cuda.cpython-311.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
            "flash_attn_2_cuda does not fit the torch that is here",
        ),
        (
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /e/alib.so)",
            "the C library that is here does not fit /e/alib.so, which asks for GLIBCXX_3.4.29",
        ),
        (
            "TypeError: Descriptors cannot be created directly.",
            "the generated code of pack does not fit protobuf",
        ),
        (
            "ImportError: cannot import name 'gone' from 'hublib' (/e/site-packages/hublib/__init__.py)",
            "pack does not fit hublib, which has no gone",
        ),
        (
            "RuntimeError: operator torchvision::nms does not exist",
            "torchvision does not fit torch",
        ),
        ("KeyError: 'version'", ""),
        ("ImportError: cannot import name 'a' from 'mine' (/job/mine.py)", ""),
    ],
)
def test_the_pair_is_read_out_of_the_message(text: str, says: str) -> None:
    found = version_pair(text, ["/usr/lib/python3.11/runpy.py", "/e/site-packages/pack/core.py"])

    assert (found.says if found is not None else "") == says
