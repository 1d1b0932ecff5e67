"""Planted illnesses as the tool gets to see them: under a random name, without the words that
give them away.
"""

from __future__ import annotations

import ast
import os
import re
import secrets
import sys
from pathlib import Path

GALLERY = Path(__file__).resolve().parent
PACE = (
    GALLERY / "pace.yaml"
)  # shorter waits than a user's, so that the whole gallery can be walked in minutes
TORCHRUN_ON_PATH = {
    "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"
}


def plant(kind: str, name: str, folder: Path) -> Path:
    """Copy `kind`/`name`.py into `folder` under a random module name, its docstring gone and its
    option --culprit renamed --pick.
    """
    text = without_docstring(GALLERY / kind / f"{name}.py")
    planted = folder / f"m{secrets.token_hex(4)}.py"
    planted.write_text(re.sub(r"\bculprit\b", "pick", text), encoding="utf-8")
    return planted


def without_docstring(path: Path) -> str:
    """The text of a program without the docstring that tells what is wrong with it."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        lines = text.splitlines(keepends=True)
        text = "".join(lines[: first.lineno - 1] + lines[first.end_lineno or first.lineno :])
    return text


def command(form: str, script: Path, *args: str) -> list[str]:
    """The words after `--`: ranks launched by the tool (`own`), or the user's own torchrun
    command (`torchrun`).
    """
    if form == "own":
        return [str(script), *args]
    return ["torchrun", "--nproc-per-node", "{ranks}", str(script), *args]
