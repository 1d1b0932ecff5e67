"""Which blocks of a source file enclose a line: `if`, loop, `with` and the like. Pure; nothing is
executed.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import sys
import threading
import tokenize
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainprobe.stacks.called_functions import calls_below, calls_in

if TYPE_CHECKING:
    from trainprobe.stacks.called_functions import Modules

TEXT_CAP = 300
SOURCE_CAP = 2 * 2**20
# Before Python 3.11 a chain of some 100,000 operators in one expression overflows the C stack of
# the parser and kills the process.
CHAIN_CAP = 20_000
SKIPS_CAP = 8
MADE_CAP = 6
TRIES_CAP = 12
_SLEEPS = re.compile(r"\bsleep\(|\.wait\(")
_WAITS_FOR = re.compile(r"\b([A-Za-z_]\w*)(?:\[[^\]]{1,40}\])?\.wait\(")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NOT_SEARCHED = (*_LOOPS, *_FUNCTIONS, ast.ClassDef)
_LEAVING = (ast.Continue, ast.Break, ast.Return)
_CHAINING = "+-*/%@&|^.([<>"
_warning_filters = threading.Lock()  # all threads share the filters


@dataclass(frozen=True)
class Block:
    """A block around a line. `kind` is if, for, while, with, try, match, case, class, def or
    decorator; `branch` is body, orelse, handler or finally.

    `line` and `text` are those of the header: for a handler of its `except`, else of the statement
    (`if rank == 0:` also for its else). Each decorator of a function stands before its def. `made`
    is where the names of an if have their values from: `self.rank == 0` of `if writes:`.
    """

    kind: str = ""
    line: int = 0
    text: str = ""
    branch: str = "body"
    made: str = ""


@dataclass(frozen=True)
class Skip:
    """A branch above a line that skips it: in a loop around the line `if bad(batch): continue`, in
    its function `if not rows: return x`.

    `line` and `text` are those of the branch's header (of its `if` also for an else, `branch` is
    then orelse); `how` is continue, break or return; `loop` is the line of the loop's header, of
    the function's for a return outside of loops; `made` is that of a Block. Other loops inside are
    not searched.
    """

    line: int = 0
    text: str = ""
    how: str = ""
    loop: int = 0
    branch: str = "body"
    made: str = ""


@dataclass(frozen=True)
class Place:
    """A line with its statement's text, the innermost function (`<module>` outside of all) and its
    blocks, innermost last.

    `skips` are the branches by which an iteration, or a call of the function, may miss the line: at
    most the SKIPS_CAP nearest above it. `exits` are those below it by which a loop around the line
    may be left. `tries` are the functions called in the loop around a line that sleeps, and by its
    own functions, as `urllib.request.urlopen; json.load`: what is tried again. `made` is how the
    function made what the line waits for: `dist.irecv(x, src=0)` of `work.wait()`.
    """

    line: int
    function: str
    text: str
    blocks: tuple[Block, ...] = ()
    skips: tuple[Skip, ...] = ()
    made: str = ""
    exits: tuple[Skip, ...] = ()
    tries: str = ""


@dataclass(frozen=True)
class Places:
    """What is known of the lines asked for. `flaw` says why there are no blocks, empty when
    there are.
    """

    places: tuple[Place, ...]
    flaw: str = ""


def read_places(
    text: str, lines: Iterable[int], imported: Callable[[str, int], str | None] | None = None
) -> Places:
    """Find the blocks around each line. A text that cannot be parsed still gives the text of the
    lines; lines outside of it give nothing. `imported` is the text of a module that the file
    imports, by its name and the number of leading dots, where that is at hand.
    """
    # The parser counts only these line ends, unlike str.splitlines.
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    wanted = sorted({line for line in lines if 1 <= line <= len(rows)})
    tree, flaw = _parse(text)
    if tree is None:
        return Places(tuple(Place(line, "", _short(rows[line - 1])) for line in wanted), flaw)
    known: dict[tuple[str, int], ast.Module | None] = {}

    def module(name: str, level: int) -> ast.Module | None:
        if imported is None:
            return None
        if (name, level) not in known:
            content = imported(name, level)
            known[name, level] = _parse(content)[0] if content is not None else None
        return known[name, level]

    names = _Names(tree.body, rows, modules=module)
    return Places(tuple(_place(tree, rows, line, names) for line in wanted))


def _parse(text: str) -> tuple[ast.Module | None, str]:
    if len(text) > SOURCE_CAP:
        return None, f"the source is longer than {SOURCE_CAP} characters"
    if sys.version_info < (3, 11) and _has_long_chain(text):
        return None, "an expression of the source is too long to be parsed safely"
    try:
        with _warning_filters, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about the job's source is not ours to print
            return ast.parse(text), ""
    except SyntaxError as error:
        return None, f"the source has a syntax error in line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError, OverflowError, SystemError) as error:
        return None, f"the source cannot be parsed: {type(error).__name__} {error}".rstrip()


def _has_long_chain(text: str) -> bool:
    if sum(map(text.count, _CHAINING)) <= CHAIN_CAP:
        return False
    links = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                links = 0
            elif token.type == tokenize.OP and token.string[0] in _CHAINING:
                links += 1
                if links > CHAIN_CAP:
                    return True
    except (tokenize.TokenError, SyntaxError, ValueError):
        return False  # Then the parser refuses it as well, and early.
    return False


def _place(tree: ast.Module, rows: Sequence[str], line: int, names: _Names) -> Place:
    blocks: list[Block] = []
    function = "<module>"
    loops: list[Any] = []
    statements: Sequence[Any] = tree.body
    scope = statements
    while True:
        node = next((each for each in statements if _covers([each], line)), None)
        inside = None if node is None else _step_into(node, rows, line)
        if inside is None:
            text = _short(rows[line - 1]) if node is None else _line_text(statements, rows, line)
            made = _made(scope, rows, text, line)
            skips, exits = _skips(loops, names, line), _exits(loops, names, line)
            tries = _tries(tree, loops, text, names.modules)
            return Place(line, function, text, tuple(blocks), skips, made, exits, tries)
        found, statements = inside
        if isinstance(node, ast.If):
            found[-1] = replace(found[-1], made=names.made(node.test))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            found[-1] = replace(found[-1], made=names.gave(node.iter))
        blocks.extend(found)
        if isinstance(node, _FUNCTIONS):
            function, scope, loops = node.name, statements, [node]
            names = replace(names, scope=scope)
        elif isinstance(node, ast.ClassDef):
            loops = []
            names = replace(names, members=statements)
        elif isinstance(node, _LOOPS) and found[-1].branch == "body":
            loops.append(node)


def _tries(tree: ast.Module, loops: Sequence[Any], text: str, modules: Modules) -> str:
    """The functions that the innermost loop around a line that sleeps calls, that line's aside, and
    those that they call themselves.
    """
    around = [loop for loop in loops if isinstance(loop, _LOOPS)]
    if not around or not _SLEEPS.search(text):
        return ""
    own = calls_in(around[-1:])
    names = dict.fromkeys((*own, *calls_below(tree, own, modules)))
    return _short("; ".join([name for name in names if not _SLEEPS.search(f"{name}(")][:TRIES_CAP]))


def _made(scope: Sequence[Any], rows: Sequence[str], text: str, line: int) -> str:
    """The expressions above the line that made what it waits for, by the names that lead there."""
    waits = _WAITS_FOR.search(text)
    wanted = [waits.group(1)] if waits is not None else []
    found: list[str] = []
    for name in wanted:  # grows while names lead on
        for node in (inner for each in scope for inner in _nodes(each) if inner.lineno <= line):
            value = _bound(node, name)
            if value is None or len(found) >= MADE_CAP:
                continue
            found.append(_cut_node(value, rows))
            names = (inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name))
            if len(wanted) < MADE_CAP:
                wanted += [one for one in dict.fromkeys(names) if one not in wanted]
    return _short("; ".join(found))


_PLAIN = (ast.Name, ast.Attribute, ast.Compare, ast.BoolOp, ast.UnaryOp)


@dataclass(frozen=True)
class _Names:
    """Where the names of a condition may have their values from: the statements of the `module`, of
    the class (`members`) and of the function (`scope`) around it. `known` keeps what was found.
    """

    module: Sequence[Any]
    rows: Sequence[str]
    members: Sequence[Any] = ()
    scope: Sequence[Any] = ()
    known: dict[tuple[bool, int], dict[str, list[Any]]] = field(default_factory=dict)
    modules: Modules = field(default=lambda name, level: None)  # noqa: ARG005

    def made(self, test: Any) -> str:
        """What gives the names of a condition their values, as far as that is a condition itself;
        of a call its name, and what the function returns where it stands in the file.
        """
        wanted = list(_keys(test))
        found: list[str] = []
        for name in wanted:  # grows while names lead on
            for value in self._values(name):
                if len(found) >= MADE_CAP:
                    break
                if isinstance(value, ast.Call):
                    found.append(f"{_cut_node(value.func, self.rows)}(…)")
                    wanted += [one for one in _keys(value.func) if one not in wanted]
                elif isinstance(value, _PLAIN):
                    found += [] if isinstance(value, ast.Name) else [_cut_node(value, self.rows)]
                    wanted += [one for one in _keys(value) if one not in wanted]
                del wanted[MADE_CAP:]
        return _short("; ".join(dict.fromkeys(found)))

    def gave(self, items: Any) -> str:
        """The expressions that the names in what a loop goes through had their values from."""
        values = (value for name in _keys(items) for value in self._values(name))
        found = (_cut_node(value, self.rows) for value in itertools.islice(values, MADE_CAP))
        return _short("; ".join(dict.fromkeys(found)))

    def _values(self, name: str) -> Sequence[Any]:
        own = name.startswith("self.")
        key = (own, id(self.members if own else self.scope))
        if key not in self.known:
            methods = [one for part in self.members for one in getattr(part, "body", ())]
            self.known[key] = (
                _values_of(methods, self.members, "self.")
                if own
                else _values_of(self.scope, self.module, "")
            )
        return self.known[key].get(name, ())


def _values_of(
    statements: Sequence[Any], functions: Sequence[Any], prefix: str
) -> dict[str, list[Any]]:
    """What the statements give to each name, and what each of the functions returns or yields."""
    found: dict[str, list[Any]] = {}
    for node in (inner for each in statements for inner in _nodes(each)):
        pairs = [] if isinstance(node, _LOOPS) else _assigned(node)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items]
        for target, value in pairs:
            if target is not None and value is not None and (key := _key(target)):
                found.setdefault(key, []).append(value)
    for function in functions:
        if isinstance(function, _FUNCTIONS):
            given = found.setdefault(prefix + function.name, [])
            for inner in (one for each in function.body for one in _nodes(each)):
                value = getattr(inner, "value", None)
                if isinstance(value, ast.Yield) or isinstance(inner, ast.Return):
                    value = value.value if isinstance(value, ast.Yield) else value
                    given += [] if value is None else [value]
    return found


def _assigned(node: Any) -> list[tuple[Any, Any]]:
    """The targets of a statement, each with what it gets; of a loop what it goes through."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    value = getattr(node, "value", None) or getattr(node, "iter", None)
    return [pair for target in targets for pair in _unpacked(target, value)]


def _unpacked(target: Any, value: Any) -> list[tuple[Any, Any]]:
    """`first, last = rank == 0, rank == size - 1` as two; what one call gives to several names is
    given to each.
    """
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
    values = value.elts if alike else [value] * len(target.elts)
    return [pair for each in zip(target.elts, values) for pair in _unpacked(*each)]


def _keys(node: Any) -> Iterable[str]:
    """The names in an expression: `x`, and `self.x` of an attribute."""
    for one in ast.walk(node):
        if key := _key(one):
            yield key


def _key(node: Any) -> str:
    if isinstance(node, ast.Name) and node.id != "self":
        return node.id
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"self.{node.attr}" if own and node.value.id == "self" else ""


def _nodes(node: Any) -> Iterable[Any]:
    """The statements and calls below a statement, those of inner functions left out."""
    ahead = [node]
    while ahead:
        one = ahead.pop()
        if isinstance(one, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(one, (ast.stmt, ast.Call)):
            yield one
        ahead.extend(reversed(list(ast.iter_child_nodes(one))))


def _bound(node: Any, name: str) -> Any:
    """What a statement gives to a name, or puts into it; None where it does neither."""
    for target, value in _assigned(node):
        if isinstance(target, ast.Name) and target.id == name:
            return value
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)):
        for one in ast.walk(node):
            if isinstance(one, ast.comprehension) and _key(one.target) == name:
                return one.iter
    puts = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if puts and node.func.attr in ("append", "extend") and node.args:
        into = node.func.value
        return node.args[0] if isinstance(into, ast.Name) and into.id == name else None
    return None


def _skips(loops: Iterable[Any], names: _Names, line: int) -> tuple[Skip, ...]:
    """The branches above the line that leave an iteration of one of these loops, or return from
    this function.
    """
    found = []
    for loop in loops:
        leaving = _LEAVING if isinstance(loop, _LOOPS) else (ast.Return,)
        found += _ways_out(loop, names, leaving, lambda node: node.lineno < line)
    above = [skip for skip, end in found if end < line]
    return tuple(sorted(above, key=lambda skip: skip.line)[-SKIPS_CAP:])


def _exits(loops: Iterable[Any], names: _Names, line: int) -> tuple[Skip, ...]:
    """The branches at or below the line by which one of these loops ends early."""
    found = [
        skip
        for loop in loops
        if isinstance(loop, _LOOPS)
        for skip, end in _ways_out(loop, names, (ast.Break, ast.Return), lambda _node: True)
        if end >= line
    ]
    return tuple(sorted(found, key=lambda skip: skip.line)[:SKIPS_CAP])


def _ways_out(
    loop: Any, names: _Names, leaving: tuple[Any, ...], wanted: Callable[[Any], bool]
) -> list[tuple[Skip, int]]:
    """The branches of a loop or function that leave it, and their last lines. Not recursive: a
    chain of elif may be long.
    """
    found = []
    ahead = list(loop.body)
    while ahead:
        node = ahead.pop()
        if isinstance(node, _NOT_SEARCHED) or not wanted(node):
            continue
        for head, branch, statements in _branches(node):
            ahead.extend(statements)
            end = statements[-1]
            while isinstance(end, (ast.With, ast.AsyncWith)):
                end = end.body[-1]
            if head is not None and isinstance(end, leaving):
                text, how = _header(head, names.rows), type(end).__name__.lower()
                made = names.made(head.test) if isinstance(head, ast.If) else ""
                skip = Skip(head.lineno, text, how, loop.lineno, branch, made)
                found.append((skip, _last_line(end)))
    return found


def _branches(node: Any) -> list[tuple[Any, str, Sequence[Any]]]:
    """The statements below a statement, with the branch that they are and the node of its
    header; None where no condition leads there.
    """
    head = node if isinstance(node, ast.If) else None
    found = [(head, name, getattr(node, name, ())) for name in ("body", "orelse", "finalbody")]
    found += [(handler, "handler", handler.body) for handler in getattr(node, "handlers", ())]
    found += [(None, "body", case.body) for case in getattr(node, "cases", ())]
    return [branch for branch in found if isinstance(branch[2], list) and branch[2]]


def _step_into(
    node: Any, rows: Sequence[str], line: int
) -> tuple[list[Block], Sequence[Any]] | None:
    """The blocks that this statement opens around the line, and the statements to look at next;
    None when the line is its own.
    """
    kind = _KINDS.get(type(node).__name__)
    if kind is None:
        return None
    for case in getattr(node, "cases", ()):
        if _covers(case.body, line):
            number, parts = case.pattern.lineno, [case.pattern, case.guard]
            head = _header_text(rows, number, _indent(rows[number - 1]), parts)
            match = Block(kind, node.lineno, _header(node, rows))
            return [match, Block("case", number, head)], case.body
    for handler in getattr(node, "handlers", ()):
        if _covers(handler.body, line):
            head = _header(handler, rows)
            return [Block(kind, handler.lineno, head, "handler")], handler.body
    for name, branch in (("body", "body"), ("orelse", "orelse"), ("finalbody", "finally")):
        statements = getattr(node, name, ())
        if _covers(statements, line):
            around = [
                Block("decorator", one.lineno, f"@{_cut_node(one, rows)}")
                for one in getattr(node, "decorator_list", ())
            ]
            return [*around, Block(kind, node.lineno, _header(node, rows), branch)], statements
    return None


def _header(node: Any, rows: Sequence[str]) -> str:
    return _header_text(rows, node.lineno, node.col_offset, _header_parts(node))


def _header_parts(node: Any) -> list[Any]:
    """The expressions of a compound statement's header; its colon comes after the last of them."""
    names = ("test", "target", "iter", "subject", "returns", "type")
    parts = [getattr(node, name, None) for name in names]
    for name in ("bases", "keywords", "type_params"):
        parts += getattr(node, name, ())
    for item in getattr(node, "items", ()):
        parts += [item.context_expr, item.optional_vars]
    args = getattr(node, "args", None)
    if isinstance(args, ast.arguments):
        parts += [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        parts += [*args.defaults, *args.kw_defaults]
    return parts


def _header_text(rows: Sequence[str], line: int, column: int, parts: Iterable[Any]) -> str:
    """The header as one line, up to and with its colon."""
    ends = [(part.end_lineno, part.end_col_offset) for part in parts if part is not None]
    last_line, last_column = max(ends, default=(line, column))
    before = _cut(rows, line, column, last_line, last_column)
    after = _cut(rows, last_line, last_column, last_line + 5, None)
    return _short(before + after[: after.find(":") + 1])


def _statement_text(node: Any, rows: Sequence[str]) -> str:
    """The statement as one line; of a compound one its header only."""
    kind = _KINDS.get(type(node).__name__)
    if kind is not None:
        return _header(node, rows)
    return _cut_node(node, rows)


def _line_text(statements: Sequence[Any], rows: Sequence[str], line: int) -> str:
    """The statement that covers the line; of several (`a(); b()`) all, since any may run."""
    here = [each for each in statements if _covers([each], line)]
    return _short("; ".join(_statement_text(each, rows) for each in here))


def _cut(
    rows: Sequence[str], line: int, column: int, last_line: int, last_column: int | None
) -> str:
    """The text of a range. Columns count UTF-8 bytes, as ast gives them."""
    taken = [row.encode("utf-8", "replace") for row in rows[line - 1 : min(last_line, line + 40)]]
    if len(taken) == last_line - line + 1 and last_column is not None:
        taken[-1] = taken[-1][:last_column]
    if taken:
        taken[0] = taken[0][column:]
    return b"\n".join(taken).decode("utf-8", "replace")


def _cut_node(node: Any, rows: Sequence[str]) -> str:
    return _short(_cut(rows, node.lineno, node.col_offset, _last_line(node), node.end_col_offset))


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _covers(statements: Sequence[Any], line: int) -> bool:
    return bool(statements) and _first_line(statements[0]) <= line <= _last_line(statements[-1])


def _first_line(node: Any) -> int:
    """Decorators stand above the line that a function or class calls its own."""
    decorators = getattr(node, "decorator_list", ())
    return int(min([node.lineno, *(decorator.lineno for decorator in decorators)]))


def _last_line(node: Any) -> int:
    return int(node.end_lineno or node.lineno)


def _short(text: str) -> str:
    words = " ".join(text[: TEXT_CAP * 8].split())
    return words if len(words) <= TEXT_CAP else words[: TEXT_CAP - 1] + "…"


_KINDS: dict[str, str] = {
    "If": "if",
    "For": "for",
    "AsyncFor": "for",
    "While": "while",
    "With": "with",
    "AsyncWith": "with",
    "Try": "try",
    "TryStar": "try",
    "Match": "match",
    "FunctionDef": "def",
    "AsyncFunctionDef": "def",
    "ClassDef": "class",
}
