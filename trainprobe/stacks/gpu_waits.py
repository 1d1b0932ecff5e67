"""How it shows from outside that a process computes on a GPU, and that its main thread waits there.

Such a thread runs all the while: CUDA asks again and again whether the GPU is done, unless a
program says otherwise (cudaDeviceScheduleBlockingSync).
"""

from __future__ import annotations

import re

# `cuda-EvtHandlr` and `cuda00001400006`, as the driver 580 names its threads.
_OF_CUDA = re.compile(r"cuda-Evt\w*|cuda[0-9a-f]{8,}")
_TO_HOST = re.compile(
    r"\.(?:item|tolist|cpu|numpy|nonzero|any|all|equal)\(|\.to\(['\"]cpu|\b(?:float|int|bool)\("
)


def is_of_cuda(name: str) -> bool:
    """Is this the name of a thread of the CUDA driver (/proc/PID/task/TID/comm)?"""
    return name.startswith("cuda") and _OF_CUDA.fullmatch(name) is not None


def brings_to_host(text: str) -> bool:
    """Does this line of source make the host wait for a value from the GPU, if one lies there?"""
    return _TO_HOST.search(text) is not None
