"""What the cells of a Jupyter notebook printed, as one log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

CAP_BYTES = 64 * 2**20
_BEGINS = re.compile(r'\{\s{0,40}"(?:cells"\s{0,4}:\s{0,4}\[|metadata"|nbformat)')


def is_notebook(text: str) -> bool:
    """Whether a text that begins like this is a notebook of format 4 (nbformat.readthedocs.io)."""
    return _BEGINS.match(text) is not None and ('"cell_type"' in text or '"nbformat"' in text)


def printed_output(content: bytes) -> bytes:
    """Return the output of all code cells in their order: what was printed, and tracebacks.

    Raises ValueError for what is no whole notebook.
    """
    try:
        cells = json.loads(content.decode("utf-8", "replace"))["cells"]
        return "\n".join(text.rstrip("\n") for text in _outputs(cells)).encode("utf-8", "replace")
    except (RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ValueError("no whole notebook") from error


def _outputs(cells: list[dict[str, Any]]) -> Iterator[str]:
    for cell in cells:
        for output in cell.get("outputs", ()):
            if output.get("output_type") == "error":
                bare = [f"{output['ename']}: {output['evalue']}"]
                yield "\n".join(output.get("traceback") or bare)
            else:
                yield _joined(output.get("text") or output.get("data", {}).get("text/plain", ""))


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(map(str, text))
