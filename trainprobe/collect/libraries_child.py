"""The program that `libraries.py` runs: read which version each package of a library says it is.

`libraries_child.py PATH…`, paths of libtorch and libnccl as they lie in wheels. It prints a JSON
line per path that tells one. It may hang on a dead mount, and is then killed.
"""

from __future__ import annotations

import json
import os
import re
import sys

VERSION_BYTES = 8192
_OF_TORCH = re.compile(
    r"""^__version__(?:\s*:[^=\n]*)?\s*=\s*['"]([\w.+!-]{1,80})['"]""", re.MULTILINE
)
_OF_NCCL = re.compile(r"(?:nvidia_)?nccl\w*-([\w.+!-]{1,80})\.dist-info")
_IN_NAME = re.compile(r"libnccl\.so\.(\d+\.\d+[\d.]*)")


def version(path: str) -> str:
    """`SITE/torch/lib/libtorch_cpu.so` has SITE/torch/version.py beside it, and
    `SITE/nvidia/nccl/lib/libnccl.so.2` a folder SITE/nvidia_nccl_cu12-2.27.3.dist-info.
    """
    package = os.path.dirname(os.path.dirname(path))
    if os.path.basename(path).startswith("libtorch"):
        with open(os.path.join(package, "version.py"), encoding="utf-8") as file:
            found = _OF_TORCH.search(file.read(VERSION_BYTES))
        return found.group(1) if found else ""
    named = _IN_NAME.search(os.path.basename(os.path.realpath(path)))
    if named:
        return named.group(1)
    site = os.path.dirname(os.path.dirname(package))
    told = {match.group(1) for name in os.listdir(site) if (match := _OF_NCCL.fullmatch(name))}
    return told.pop() if len(told) == 1 else ""


def main() -> None:
    for path in sys.argv[1:]:
        try:
            found = version(path)
        except (OSError, ValueError):
            continue
        if found:
            sys.stdout.write(json.dumps({"path": path, "version": found}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
