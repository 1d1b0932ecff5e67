"""Turn a notebook into one text: its code cells one after another. One that is no Python costs only
itself.
"""

from __future__ import annotations

import ast
import json
import re
import warnings

from trainprobe.lint.limits import LARGEST_BYTES, Unreadable

MAGIC = ("%", "!", "?")
HELP = re.compile(r"[\w.*]+\?{1,2}")
ASSIGNED = re.compile(r"([\w, .\[\]'\"]+?)\s*=\s*[!%]\s*\w.*")


def cells_as_text(notebook: str) -> tuple[str, list[tuple[int, str]]]:
    """The code of all cells, magics commented out, and the cells that are no Python, with the
    reason: their lines are comments. Raises Unreadable with a sentence.
    """
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
    broken: list[tuple[int, str]] = []
    for number, text in texts:
        lines.append(f"# cell {number}")
        # another language
        if text.startswith("%%") and not text.startswith(("%%time", "%%capture")):
            lines += ["# " + line for line in text.split("\n")]
            continue
        plain = [_without_magic(line) for line in text.split("\n")]
        problem = _problem_of("\n".join(plain))
        if problem:
            broken.append((number, problem))
            plain = ["# " + line for line in plain]
        lines += plain
    return "\n".join(lines) + "\n", broken


def _without_magic(line: str) -> str:
    """A line of IPython as one of Python: `%env A=1` and `!ls` do nothing, `x = !ls` gives None."""
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if bare.startswith(MAGIC) or (bare.endswith("?") and HELP.fullmatch(bare)):
        return f"{indent}pass  # {bare}"
    assigned = ASSIGNED.match(bare)
    return f"{indent}{assigned[1]} = None  # {bare}" if assigned is not None else line


def _problem_of(code: str) -> str:
    """Why the code of a cell is no Python, "" where it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return f"{error.msg} in its line {error.lineno}" if error.lineno else str(error.msg)
    except (RecursionError, MemoryError, ValueError) as error:
        return str(error) or "it is nested too deeply"
    return ""
