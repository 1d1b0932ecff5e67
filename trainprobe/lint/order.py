"""The order in which one process makes calls, through imports and the project's functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from trainprobe.lint.calls import called_functions, callers
from trainprobe.lint.jobs import imported_modules, importers
from trainprobe.lint.modules import Class, Function, Module
from trainprobe.lint.program import Program

MOST = 400


class Event(NamedTuple):
    """What a rule looks for, where the process reaches it. `via` are the calls on the way."""

    kind: str
    module: Module
    node: ast.AST
    via: tuple[ast.AST, ...] = ()


CallKind = Callable[[Program, Module, ast.Call], str]
"""Names the kind of a call, "" where it does not matter."""
StatementKinds = Callable[[Program, Module], Iterable[tuple[ast.AST, str]]]
"""Statements of a module that matter in addition to its calls, with their kinds."""


class Order:
    """The events of one question (`kind_of_call`) in the order in which one process meets them."""

    def __init__(
        self,
        program: Program,
        kind_of_call: CallKind,
        statement_kinds: StatementKinds | None = None,
        ends_in: Callable[[Module], bool] | None = None,
    ) -> None:
        """With `ends_in`, only traces that may come to one of these modules matter."""
        self.program, self.kind_of_call = program, kind_of_call
        self.statement_kinds, self.ends_in = statement_kinds, ends_in
        self._called = called_functions(program)
        self._kinds: dict[Module, dict[ast.AST, str]] = {}
        self._statements: dict[Module, dict[Function | None, list[tuple[ast.AST, str]]]] = {}
        self._of_function: dict[Function, tuple[Event, ...]] = {}
        self._of_module: dict[tuple[Module, bool], tuple[Event, ...]] = {}

    def traces(self) -> Iterator[list[Event]]:
        """Yield an order for each module's top level, then for each function that nobody calls."""
        starts = self.program.examined
        if self.ends_in is not None:
            # what a process comes to, its modules import
            leading = importers(self.program, list(filter(self.ends_in, starts)))
            starts = [module for module in starts if module in leading]
        for module in starts:
            top = self.top(module)
            if top:
                yield list(top)
            for function in module.functions.values():
                if callers(self.program, function):
                    continue
                own = self.within(function)
                if not own:
                    continue
                before = list(self.top(module, imported=True))
                if (
                    function.cls is not None
                    and function.name != "__init__"
                    and (made := _constructor(self.program, function.cls)) is not None
                ):
                    before += self.within(made)
                yield [*before, *own]

    def kinds(self, module: Module) -> dict[ast.AST, str]:
        """The kinds of the calls of a module that matter."""
        if module not in self._kinds:
            self._kinds[module] = {
                node: kind
                for node in module.of(ast.Call)
                if (kind := self.kind_of_call(self.program, module, node))
            }
        return self._kinds[module]

    def top(self, module: Module, *, imported: bool = False) -> tuple[Event, ...]:
        """What running a module as a script, or importing it, comes to."""
        key = module, imported
        if key not in self._of_module:
            self._of_module[key] = ()  # ends circles of imports
            steps: list[tuple[tuple[int, int], tuple[Event, ...]]] = []
            for statement, other in imported_modules(self.program, module):
                if module.function_of(statement) is None and self._runs(
                    module, statement, imported
                ):
                    steps.append(((statement.lineno, 0), self.top(other, imported=True)))
            steps += self._statement_events(module, None, imported)
            steps += self._calls(
                module, [call for call in module.top_calls if self._runs(module, call, imported)]
            )
            self._of_module[key] = _joined(steps)
        return self._of_module[key]

    @staticmethod
    def _runs(module: Module, node: ast.AST, imported: bool) -> bool:
        return not (imported and module.is_of_script(node))

    def within(self, function: Function) -> tuple[Event, ...]:
        """What a call of a function comes to."""
        if function not in self._of_function:
            self._of_function[function] = ()
            steps = self._calls(function.module, function.calls)
            steps += self._statement_events(function.module, function)
            self._of_function[function] = _joined(steps)
        return self._of_function[function]

    def _statement_events(
        self, module: Module, function: Function | None, imported: bool = False
    ) -> list[tuple[tuple[int, int], tuple[Event, ...]]]:
        if self.statement_kinds is None:
            return []
        if module not in self._statements:
            holder: dict[Function | None, list[tuple[ast.AST, str]]] = {}
            for node, kind in self.statement_kinds(self.program, module):
                holder.setdefault(module.function_of(node), []).append((node, kind))
            self._statements[module] = holder
        return [
            (_end(node), (Event(kind, module, node),))
            for node, kind in self._statements[module].get(function, [])
            if self._runs(module, node, imported)
        ]

    def _calls(
        self, module: Module, nodes: list[ast.Call]
    ) -> list[tuple[tuple[int, int], tuple[Event, ...]]]:
        steps: list[tuple[tuple[int, int], tuple[Event, ...]]] = []
        kinds = self.kinds(module)
        for node in nodes:
            kind, called = kinds.get(node), self._called.get(node)
            if (kind is None and called is None) or isinstance(module.scope_of(node), ast.Lambda):
                continue  # a lambda runs when somebody calls it
            if kind is not None:
                steps.append((_end(node), (Event(kind, module, node),)))
            elif called is not None:
                inner = self.within(called)
                if inner:
                    steps.append(
                        (
                            _end(node),
                            tuple(event._replace(via=(node, *event.via)) for event in inner[:MOST]),
                        )
                    )
        return steps


def exclusive(module: Module, item: ast.AST, other: ast.AST) -> bool:
    """Whether one pass runs only one of two places: separate branches, or one that leaves."""
    above = {id(node): node for node in module.ancestors(other)}
    inner = item
    for node in module.ancestors(item):
        if isinstance(node, ast.If):
            in_body = any(inner is each for each in node.body)
            branch = (
                node.body
                if in_body
                else node.orelse
                if any(inner is each for each in node.orelse)
                else None
            )
            if branch is not None:
                if id(node) in above:
                    there = [other, *module.ancestors(other)]
                    opposite = node.orelse if in_body else node.body
                    if any(any(each is up for up in there) for each in opposite):
                        return True
                elif isinstance(branch[-1], ast.Return | ast.Raise | ast.Continue):
                    return True
        inner = node
    return False


def _constructor(program: Program, cls: Class) -> Function | None:
    return program.names.method(cls, "__init__")


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


def _joined(steps: list[tuple[tuple[int, int], tuple[Event, ...]]]) -> tuple[Event, ...]:
    steps.sort(key=lambda step: step[0])
    return tuple(event for _end, events in steps for event in events)[:MOST]


def preceded(program: Program, kind_of_call: CallKind, last: str) -> Iterator[tuple[Event, Event]]:
    """Yield each event of kind `last` with the first event of another kind that comes before it."""
    reported: set[ast.AST] = set()
    order = Order(program, kind_of_call, ends_in=lambda each: last in order.kinds(each).values())
    for trace in order.traces():
        earlier: list[Event] = []
        for event in trace:
            if event.kind != last:
                earlier.append(event)
            elif event.node not in reported:
                for item in earlier:
                    same = item.module is event.module
                    if not same or not exclusive(event.module, item.node, event.node):
                        reported.add(event.node)
                        yield event, item
                        break
