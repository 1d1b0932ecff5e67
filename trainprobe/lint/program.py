"""The program under reading: its modules by path and dotted name, and its configuration files."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from trainprobe.lint.limits import Unreadable, parsed
from trainprobe.lint.model import NotRead
from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.names import Names
from trainprobe.lint.notebooks import cells_as_text
from trainprobe.lint.values import Values


@dataclass(frozen=True)
class Source:
    """A file as read. `name` is its dotted name; `requested` is false if an import led here."""

    path: str
    text: str
    name: str
    requested: bool = True
    is_package: bool = False


@dataclass(frozen=True)
class NodeInfo:
    """The node on which the program runs; None or a missing package means unknown. `versions` of
    packages, `cpus` of the job, `descriptors` per process, `ranks` per node.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    cpus: int | None = None
    descriptors: int | None = None
    ranks: int | None = None


class Program:
    """All modules that were read together; no rule touches the disk. `configs` maps a path in the
    source to the content of its YAML or JSON; `around` describes the node.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        configs: Mapping[str, Any] | None = None,
        around: NodeInfo | None = None,
    ) -> None:
        self.modules: dict[str, Module] = {}
        self.not_read: list[NotRead] = []
        self.tests_left_out = 0
        self.configs = dict(configs or {})
        self.around = around or NodeInfo()
        self.examined: list[Module] = []
        """The modules in which rules look for findings: all, or fewer while a failed rule is run
        again. Names are followed through all modules.
        """
        self._by_path: dict[str, Module] = {}
        self._places: set[str] = set()
        """Files without their ending, and the folders above them: where an import may lead."""
        self._heads: set[str] = set()
        """The last parts of these places."""
        self._import_cache: dict[tuple[str, str], str] = {}
        self.names: Names
        self.values: Values
        self.memory: dict[Any, Any]
        """Remembered answers, each under a key of the function that gave it."""
        self.forget()
        for source in sources:
            self.add(source)

    def forget(self) -> None:
        """Drop remembered answers: a failed rule leaves unfinished ones behind."""
        self.names, self.values, self.memory = Names(self), Values(self), {}
        self.examined = list(self.modules.values())

    @contextlib.contextmanager
    def tolerance(self, module: Module) -> Iterator[None]:
        """Report a failure inside; it costs the index of calls the calls of this one file."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a stranger's source makes fail must not cost the other files
            problem = NotRead(module.path, f"Its calls were not all followed: {problem_of(error)}.")
            self.not_read += [] if problem in self.not_read else [problem]

    def add(self, source: Source) -> Module | None:
        """Parse and index one file; None, with a line in `not_read`, where it cannot be read."""
        try:
            text, broken = (
                cells_as_text(source.text) if source.path.endswith(".ipynb") else (source.text, [])
            )
            tree = parsed(text, source.path)
            name = source.name
            while name in self.modules:
                name += "'"
            module = Module(
                source.path,
                name,
                text,
                tree,
                requested=source.requested,
                is_package=source.is_package,
            )
        except Unreadable as problem:
            self.not_read.append(NotRead(source.path, str(problem)))
            return None
        self.not_read += [
            NotRead(source.path, f"Its cell {number} is left out, which is no Python: {problem}.")
            for number, problem in broken
        ]
        module.program = self
        self.modules[name] = module
        self.examined.append(module)
        path = posixpath.normpath(source.path)
        self._by_path[path] = module
        place = posixpath.splitext(path)[0]
        while place and place not in self._places:
            self._places.add(place)
            self._heads.add(posixpath.basename(place))
            place = posixpath.dirname(place)
        return module

    @property
    def classes(self) -> list[Class]:
        """The classes of the modules under examination."""
        return [cls for module in self.examined for cls in module.classes.values()]

    def dotted(self, module: Module, node: ast.AST) -> str:
        """Return the dotted name of an expression; see `names.Names.dotted`."""
        return self.names.dotted(module, node)

    def value(self, module: Module, node: ast.AST | None) -> Any:
        """The constant value of an expression, or `values.UNKNOWN`; see `values.Values.of`."""
        return self.values.of(module, node)

    def function(self, dotted: str) -> Function | None:
        """The project's function or method of that name; `pkg.Class` is `__init__`."""
        found = self.names.definition(dotted)
        if isinstance(found, Class):
            return self.names.method(found, "__init__")
        return found

    def called(self, module: Module, call: ast.Call) -> Function | None:
        """Return the project's function that a call runs."""
        return self.function(self.dotted(module, call.func))

    def class_named(self, dotted: str) -> Class | None:
        found = self.names.definition(dotted)
        return found if isinstance(found, Class) else None

    def import_target(self, importer: Module, dotted: str) -> str:
        """`dotted` with the module part that `importer` would import, if the project has it."""
        if dotted.partition(".")[0] not in self._heads:
            return dotted
        key = (importer.folder, dotted)
        if key not in self._import_cache:
            self._import_cache[key] = self._find(importer.folder, dotted)
        return self._import_cache[key]

    def _find(self, folder: str, dotted: str) -> str:
        parts = dotted.split(".")
        for _ in range(40):
            first = posixpath.join(folder, parts[0])
            for count in range(len(parts), 0, -1) if first in self._places else ():
                stem = "/".join([first, *parts[1:count]])
                found = self._by_path.get(stem + ".py") or self._by_path.get(stem + "/__init__.py")
                if found is not None:
                    return ".".join([found.name, *parts[count:]])
            if folder in {"", "/", "."}:
                break
            folder = os.path.dirname(folder)
        return dotted  # which may be the full name of a module that was read from elsewhere


P = ParamSpec("P")
R = TypeVar("R")


def remembered(
    function: Callable[Concatenate[Program, P], R],
) -> Callable[Concatenate[Program, P], R]:
    """Let a function of a program remember its answers, until the program forgets them."""

    @functools.wraps(function)
    def answer(program: Program, /, *subject: P.args, **options: P.kwargs) -> R:
        memory: dict[Any, R] = program.memory.setdefault(function, {})
        if subject not in memory:
            memory[subject] = function(program, *subject, **options)
        return memory[subject]

    return answer


def problem_of(error: Exception) -> str:
    """Describe for the user what ended a rule."""
    return (
        "it refers to itself too deeply"
        if isinstance(error, RecursionError)
        else f"a fault of trainprobe itself ({type(error).__name__})"
    )
