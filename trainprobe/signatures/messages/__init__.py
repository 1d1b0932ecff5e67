"""What exceptions and dying processes say, kept as data in the YAML files of this folder.

A signature finds known lines in gigabytes of logs; a message recognises a text that is already at
hand. Causes refer to messages by id. Each row:

    - id: cpu-only-torch              # unique; the id of the cause, or that with a part: `cuda-oom.cublas`
      source: 'torch/cuda/__init__.py, _lazy_init()'
      any:                            # regular expressions, one of which must match by search
        - 'not compiled with (?:CUDA|XPU) enabled'
      example: 'AssertionError: Torch not compiled with CUDA enabled'
"""  # noqa: E501

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from trainprobe.shipped import read_yaml


@dataclass(frozen=True)
class Message:
    """`pattern` is one regular expression for all wordings of the message."""

    pattern: str
    example: str
    source: str = ""


@functools.cache
def messages() -> Mapping[str, Message]:
    """Return every message of this folder, by id. Raises ValueError for an id that stands twice."""
    found: dict[str, Message] = {}
    for file in sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".yaml"):
            for row in read_yaml(file.read_text(encoding="utf-8")):
                if row["id"] in found:
                    raise ValueError(f"The message {row['id']} stands twice.")
                pattern = "|".join(row["any"])
                found[row["id"]] = Message(pattern, row["example"], row.get("source", ""))
    return found


def message(id_: str) -> str:
    """Return the regular expression of one message."""
    return messages()[id_].pattern
