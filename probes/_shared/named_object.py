"""Finds what the user named on the command line: `pkg.module:name` or `file.py:name`, each also
with dots in the name (`module:make.train`).

A file is imported under its own name, with its folder first on `sys.path`, as `python file.py`
would have it: what is pickled for a spawned process is then found there. The folder of the user's
script (TRAINPROBE_SCRIPT) and the current one come next.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from typing import Any, List, Optional, Tuple


class NamedObjectError(Exception):
    """What the user named cannot be loaded.

    `sentence` says why. `error` is the exception, None where there was none. `mistyped` is true
    where the command line is wrong (no such module, file or name), false where the user's own code
    failed during the import.
    """

    def __init__(
        self, sentence: str, error: Optional[BaseException] = None, mistyped: bool = True
    ) -> None:
        super().__init__(sentence)
        self.sentence, self.error, self.mistyped = sentence, error, mistyped


def split(text: str) -> Tuple[str, str]:
    """Return (module or path, name) of `text`. Raises NamedObjectError where one is missing."""
    where, colon, name = text.strip().rpartition(":")
    if not colon or not where or not all(part.isidentifier() for part in name.split(".")):
        raise NamedObjectError(f"{text!r} is not of the form pkg.module:name or file.py:name.")
    return where, name


def load_named_object(text: str) -> Any:
    """Import what `text` names; return the object, uncalled. Raises NamedObjectError, also for a
    BaseException of the module other than KeyboardInterrupt.
    """
    where, name = split(text)
    is_file = where.endswith(".py") or os.sep in where
    path = os.path.abspath(os.path.expanduser(where))
    if is_file and not os.path.isfile(path):
        raise NamedObjectError(f"There is no file {where}.")
    prepend_to_path([os.path.dirname(path)] if is_file else [])
    try:
        found = _of_file(path) if is_file else importlib.import_module(where)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit at import time is the user's too
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if not is_file and missing and (where == missing or where.startswith(missing + ".")):
            raise NamedObjectError(
                f"There is no module {missing} on the path of {sys.executable}.", error
            ) from error
        raise NamedObjectError(f"{where} cannot be imported", error, mistyped=False) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise NamedObjectError(f"{where} has no {name}{_near(found, part)}.")
        found = getattr(found, part)
    return found


def prepend_to_path(first: List[str]) -> None:
    """Put `first`, the folder of the user's script and the current one first on `sys.path`."""
    script = os.environ.get("TRAINPROBE_SCRIPT", "")
    folders = [*first, *([os.path.dirname(os.path.abspath(script))] if script else []), os.getcwd()]
    sys.path[:] = list(dict.fromkeys([*folders, *sys.path]))


def _of_file(path: str) -> types.ModuleType:
    stem = os.path.splitext(os.path.basename(path))[0]
    known = sys.modules.get(stem)
    if known is not None and os.path.realpath(
        getattr(known, "__file__", None) or ""
    ) == os.path.realpath(path):
        return known
    name = stem if known is None and stem.isidentifier() else f"_named_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NamedObjectError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _near(found: Any, name: str) -> str:
    import difflib

    near = difflib.get_close_matches(
        name, [str(item) for item in vars(found)] if hasattr(found, "__dict__") else [], n=1
    )
    return f"; did you mean {near[0]}" if near else ""
