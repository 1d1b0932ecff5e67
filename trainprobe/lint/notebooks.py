"""Turn a notebook into one text: its code cells one after another."""

from __future__ import annotations

import json

from trainprobe.lint.limits import LARGEST_BYTES, Unreadable

MAGIC = ("%", "!", "?")


def cells_as_text(notebook: str) -> str:
    """The code of all cells, magics commented out; raises Unreadable with a sentence."""
    if len(notebook) > LARGEST_BYTES * 8:  # pictures in outputs make notebooks large
        raise Unreadable(
            f"It holds {len(notebook) / 1e6:.0f} MB; a notebook of that size is not read."
        )
    try:
        cells = json.loads(notebook)["cells"]
        code = [
            (number, cell["source"])
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
        texts = [
            (number, source if isinstance(source, str) else "".join(source))
            for number, source in code
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Unreadable("It is not a notebook of format 4.") from None
    lines: list[str] = []
    for number, text in texts:
        lines.append(f"# cell {number}")
        # another language
        if text.startswith("%%") and not text.startswith(("%%time", "%%capture")):
            lines += ["# " + line for line in text.split("\n")]
            continue
        for line in text.split("\n"):
            bare = line.lstrip()
            magic = bare.startswith(MAGIC) or bare.endswith("?")
            lines.append(f"{line[: len(line) - len(bare)]}pass  # {bare}" if magic else line)
    return "\n".join(lines) + "\n"
