"""Records of one form as a class: the form once, and for each record only the values that differ.

The ranks of a node stand in the same stacks and have the same kinds of descriptor, so most of what
their records say is the same. In a form, 0 stands for a value (a scalar, or a list of scalars), an
object for an object, `["rows", NAME, ...]` for a table of objects with these names, and any other
list for the items of a list. A column holds the values that all records have in one place, or the
only value where all have the same. A value of a table is the number of its rows and its columns,
which are written in the same way.
"""

from __future__ import annotations

import functools
import json
import sys
import zlib
from itertools import repeat
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    get_args,
)

from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.pids import names_a_pid
from trainprobe.model.subjects import Subject, SubjectKind

ROWS = "rows"
MOST_DEPTH = 40
MOST_VALUES = 4_000_000  # of one class; eight ranks with sixteen loader workers have some 50,000
_SCALARS = frozenset((str, int, float, bool, type(None)))
_NUMBERS = frozenset((int, type(None)))
_OUTCOMES = frozenset(get_args(LookOutcome))
_KINDS = frozenset(get_args(SubjectKind))
Path = Tuple[str, ...]
Wrap = Callable[[Any], Any]


class Value(NamedTuple):
    """The place of a value under the key `name`; `of_pid` where it names a process."""

    name: str
    of_pid: bool


class Table(NamedTuple):
    """The place of a table."""

    columns: Tuple[Value, ...]


class Form(NamedTuple):
    """A form that was read: its nested places, and the same in their order.

    `paths` lead to the values that stand in no list, `tables` to such tables. `begins` is the first
    place of each of the record's own fields. `text` is the form as it is written: nothing stands in
    it but places and `keys`.
    """

    shape: Dict[str, Any]
    places: Tuple[Any, ...]
    paths: Dict[Path, int]
    tables: Dict[Path, int]
    begins: Dict[str, int]
    keys: Tuple[str, ...]
    text: str


def classes_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[Dict[str, Any]]:
    """Put plain JSON objects together by their form. `at` are the places of the objects among
    `rows`.
    """
    found: Dict[str, Tuple[List[int], List[List[Any]]]] = {}
    for place, row in enumerate(rows):
        values: List[Any] = []
        form = json.dumps(_shape(row, values))
        at, several = found.setdefault(form, ([], []))
        at.append(place)
        several.append(values)
    for form, (at, several) in found.items():
        yield {"form": form, "at": at, "columns": [_column(column) for column in zip(*several)]}


def _shape(value: Any, values: List[Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _shape(item, values) for key, item in value.items()}
    if not isinstance(value, (list, tuple)) or all(item.__class__ in _SCALARS for item in value):
        values.append(value)
        return 0
    names = tuple(value[0]) if isinstance(value[0], Mapping) else ()
    if names and all(_is_row(item, names) for item in value):
        values.append([len(value), *(_column([row[name] for row in value]) for name in names)])
        return [ROWS, *names]
    return [_shape(item, values) for item in value]


def _is_row(item: Any, names: Tuple[str, ...]) -> bool:
    return (
        isinstance(item, Mapping)
        and tuple(item) == names
        and all(part.__class__ in _SCALARS for part in item.values())
    )


def _column(values: Sequence[Any]) -> List[Any]:
    first = values[0]
    # for Python True, 1 and 1.0 are equal
    if all(value == first for value in values) and len({json.dumps(one) for one in values}) == 1:
        return [first]
    return list(values)


@functools.lru_cache(maxsize=4096)
def form_of(text: str) -> Form:
    """Read a form of records. Raises ValueError where it is none."""
    places: List[Any] = []
    paths: Dict[Path, int] = {}
    tables: Dict[Path, int] = {}
    begins: Dict[str, int] = {}
    keys: Dict[str, None] = {}

    def read(
        part: Any, path: Path, *, of_pid: bool = False, sealed: bool = False, listed: bool = False
    ) -> Any:
        """`sealed`: below something that stands under a pid's name without being a number."""
        if len(path) > MOST_DEPTH:
            raise ValueError("the form is too deep")
        name = path[-1] if path else ""
        if part.__class__ is int and part == 0:
            if not listed:
                paths[path] = len(places)
            places.append(Value(name, of_pid))
            return places[-1]
        if isinstance(part, dict):
            keys.update(dict.fromkeys(part))
            sealed = sealed or of_pid
            made = {}
            for key, item in part.items():
                if not path:
                    begins[key] = len(places)
                pid = not sealed and names_a_pid(key)
                made[key] = read(item, (*path, key), of_pid=pid, sealed=sealed, listed=listed)
            return made
        if not isinstance(part, list):
            raise ValueError("a form holds only places")
        if part and part[0] == ROWS:
            names = part[1:]
            if not names or not all(isinstance(one, str) for one in names):
                raise ValueError("a table has names")
            keys.update(dict.fromkeys(names))
            plain = sealed or of_pid
            if not listed:
                tables[path] = len(places)
            places.append(Table(tuple(Value(one, not plain and names_a_pid(one)) for one in names)))
            return places[-1]
        return [
            read(item, (*path, name), of_pid=of_pid, sealed=sealed, listed=True) for item in part
        ]

    try:
        found = json.loads(text)
        shape = read(found, ())
    except RecursionError:
        raise ValueError("the form is too deep") from None
    if not isinstance(shape, dict):
        raise ValueError("a record is an object")
    return Form(shape, tuple(places), paths, tables, begins, tuple(keys), json.dumps(found))


class RecordClass:
    """`count` records of one form."""

    __slots__ = ("_columns", "_data", "_left", "_packed", "_right", "_wrap", "count", "form")

    def __init__(
        self, form: str, columns: List[List[Any]], count: int, *, right: bool = False
    ) -> None:
        """`right`: the columns fit the form, and the records are evidence. Raises ValueError where
        the columns do not fit.
        """
        self.form, self.count = form_of(form), count
        self._columns: Optional[List[List[Any]]] = columns
        self._packed = b""
        self._data: List[Any] = []
        self._left = 0
        self._wrap: Optional[Wrap] = None
        self._right = right
        if not right:
            _check(self.form, columns, count)

    @property
    def columns(self) -> List[List[Any]]:
        return self._columns if self._columns is not None else _unpacked(self._packed)

    def line(self) -> bytes:
        """The class as a line of JSON. From now on it takes a tenth of the memory, and its columns
        are read again when somebody asks for them.
        """
        text = json.dumps(self.columns).encode()
        self._packed, self._columns = _packed(text), None
        return b'{"form": %b, "count": %d, "columns": %b}\n' % (
            _quoted(self.form.text),
            self.count,
            text,
        )

    def rows(self) -> List[Dict[str, Any]]:
        """The records as plain JSON."""
        return list(_filled(self.form.shape, iter(self.columns), self.count, None))

    def data(self, place: int, wrap: Optional[Wrap]) -> Dict[str, Any]:
        """The data of the record at `place`. Those of all records are made at once, share what is
        the same in all of them, and are kept until each was asked for.
        """
        if not self._left or wrap is not self._wrap or self._data[place] is None:
            columns = iter(self.columns[self.form.begins["data"] :])
            self._data = list(_filled(self.form.shape["data"], columns, self.count, wrap))
            self._wrap, self._left = wrap, self.count
        found: Dict[str, Any] = self._data[place]
        self._data[place], self._left = None, self._left - 1
        if not self._left:
            self._data, self._wrap = [], None
        return found

    def column(self, *path: str) -> List[Any]:
        """What stands at `path`. Raises ValueError where there is no value."""
        return self._at(path, self.columns)

    def _at(self, path: Path, columns: List[List[Any]]) -> List[Any]:
        if path not in self.form.paths:
            raise ValueError(f"{'.'.join(path)} is no value")
        return columns[self.form.paths[path]]

    def table(self, path: Path, place: int) -> Optional[Dict[str, Sequence[Any]]]:
        """The columns of the table at `path` in the record at `place`."""
        if path not in self.form.tables:
            return None
        number = self.form.tables[path]
        column = self.columns[number]
        count, *columns = column[place] if len(column) > 1 else column[0]
        return {
            each.name: one if len(one) == count else one * count
            for each, one in zip(self.form.places[number].columns, columns)
        }

    def changed(self, changes: Mapping[Path, List[Any]]) -> RecordClass:
        """The same with other values, of the right type, at some paths."""
        columns = list(self.columns)
        for path, column in changes.items():
            columns[self.form.paths[path]] = column
        return RecordClass(self.form.text, columns, self.count, right=self._right)

    def check(self) -> None:
        """Raises ValueError where the records are no evidence, or have fields that this version
        does not know.
        """
        if self._right:
            return
        shape, columns = self.form.shape, self.columns
        whole = (
            tuple(shape) == _FIELDS
            and isinstance(shape["subject"], dict)
            and tuple(shape["subject"]) == _OF_SUBJECT
            and isinstance(shape["data"], dict)
        )
        if not whole:
            raise ValueError("these are no records")
        for path, is_right in _IS_RIGHT.items():
            if not all(map(is_right, self._at(path, columns))):
                raise ValueError(f"{'.'.join(path)} has another type")
        if not {"ok"}.issuperset(self.column("outcome")) and not all(self.column("reason")):
            raise ValueError("a look that failed has a reason")
        self._right = True

    def evidence(self) -> List[Evidence]:
        """The records, whose data are read when they are asked for. Raises ValueError as `check`
        does.
        """
        self.check()
        columns = self.columns
        subjects = zip(*(self._spread(("subject", name), columns) for name in _OF_SUBJECT))
        own = zip(
            *(self._spread((name,), columns) for name in _FIELDS if name not in ("subject", "data"))
        )
        found = []
        for place, (subject, values) in enumerate(zip(subjects, own)):
            id_, kind, cell, source, began, took_s, outcome, reason, files, redacted, schema = (
                values
            )
            found.append(
                Evidence(
                    id_,
                    kind,
                    _subject(*subject),
                    cell,
                    source,
                    began,
                    took_s,
                    outcome,
                    reason,
                    LazyData(self, place),
                    tuple(files),
                    redacted,
                    schema,
                    _NOTHING,
                )
            )
        return found

    def _spread(self, path: Path, columns: List[List[Any]]) -> Iterable[Any]:
        column = self._at(path, columns)
        if path[-1] in _FEW:  # each node says the same
            column = list(map(sys.intern, column))
        return column if len(column) > 1 else repeat(column[0], self.count)


class LazyData(Mapping[str, Any]):
    """The data of one record of a class."""

    __slots__ = ("_of", "_place")

    def __init__(self, of: RecordClass, place: int) -> None:
        self._of, self._place = of, place

    def whole(self, wrap: Optional[Wrap] = None) -> Dict[str, Any]:
        """All of it, to be looked at more than once, with each number of a process passed through
        `wrap`.
        """
        return self._of.data(self._place, wrap)

    def table(self, name: str) -> Optional[Dict[str, Sequence[Any]]]:
        """The columns of the table under `name` by their names; None where there is no table."""
        return self._of.table(("data", name), self._place)

    def __getitem__(self, key: str) -> Any:
        return self.whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of.form.shape["data"])

    def __len__(self) -> int:
        return len(self._of.form.shape["data"])

    def __repr__(self) -> str:
        return repr(self.whole())


def read_class(row: Mapping[str, Any]) -> RecordClass:
    """Read a class out of JSON. Raises ValueError where it is none."""
    form, columns, count = row.get("form"), row.get("columns"), row.get("count")
    at = row.get("at")
    count = len(at) if isinstance(at, list) else count
    if not isinstance(form, str) or not isinstance(columns, list) or count.__class__ is not int:
        raise ValueError("a class has a form, columns and a count")
    return RecordClass(form, columns, count)


_NOTHING: Mapping[str, Any] = {}
# Each rank of a node has a record of nearly each kind.
_subject = functools.lru_cache(maxsize=256)(functools.partial(Subject, extra=_NOTHING))


# The columns of the classes of some nodes, which are read in their order.
@functools.lru_cache(maxsize=64)
def _unpacked(packed: bytes) -> List[List[Any]]:
    found: List[List[Any]] = json.loads(zlib.decompress(packed, _WINDOW))
    return found


# Most nodes send the same forms.
@functools.lru_cache(maxsize=256)
def _quoted(text: str) -> bytes:
    return json.dumps(text).encode()


# For the few thousand characters of a class the usual tables of zlib take five times as long to
# make as the rest, and save nothing.
_WINDOW, _MEMORY = -13, 5


def _packed(text: bytes) -> bytes:
    packing = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY)
    return packing.compress(text) + packing.flush()


def _check(form: Form, columns: List[List[Any]], count: int) -> None:
    """A few columns may stand for any number of values, so these are counted."""
    if len(columns) != len(form.places) or count < 1:
        raise ValueError("the columns do not fit the form")
    values = count * len(columns)
    for place, column in zip(form.places, columns):
        if column.__class__ is not list or len(column) not in (1, count):
            raise ValueError("a column does not fit the records")
        if place.__class__ is Table:
            for table in column:
                _check_table(place, table)
                values += table[0] * len(table) * (count if len(column) == 1 else 1)
        if values > MOST_VALUES:
            raise ValueError("a class holds too much")


def _check_table(place: Table, table: Any) -> None:
    whole = table.__class__ is list and len(table) == len(place.columns) + 1
    rows = table[0] if whole else None
    if rows.__class__ is not int or not 0 < rows <= MOST_VALUES:
        raise ValueError("a table has rows")
    if not all(one.__class__ is list and len(one) in (1, rows) for one in table[1:]):
        raise ValueError("a column does not fit its table")


def _filled(
    shape: Any, columns: Iterator[List[Any]], count: int, wrap: Optional[Wrap]
) -> Sequence[Any]:
    """What stands at a place of a form in each of `count` records."""
    found = _shared(shape, columns, wrap)
    if len(found) == count:
        return found
    # a record may be changed, its parts may not
    return [dict(found[0]) if shape.__class__ is dict else found[0] for _ in range(count)]


def _shared(shape: Any, columns: Iterator[List[Any]], wrap: Optional[Wrap]) -> Sequence[Any]:
    """The same, once where it is the same in all records."""
    kind = shape.__class__
    if kind is Value:
        column = next(columns)
        return column if wrap is None or not shape.of_pid else list(map(wrap, column))
    if kind is Table:
        return [_rows(shape, table, wrap) for table in next(columns)]
    parts = shape.values() if kind is dict else shape
    several = [
        next(columns)
        if part.__class__ is Value and (wrap is None or not part.of_pid)
        else _shared(part, columns, wrap)
        for part in parts
    ]
    count = max(map(len, several), default=1)
    spread = zip(*(each if len(each) == count else repeat(each[0], count) for each in several))
    if kind is dict:
        names = tuple(shape)
        return [dict(zip(names, values)) for values in spread] if names else [{}]
    return [list(values) for values in spread] if several else [[]]


def _rows(shape: Table, table: List[Any], wrap: Optional[Wrap]) -> List[Dict[str, Any]]:
    count, *columns = table
    several: List[Iterable[Any]] = [
        column if len(column) == count else repeat(column[0], count) for column in columns
    ]
    if wrap is not None:
        several = [
            map(wrap, column) if place.of_pid else column
            for place, column in zip(shape.columns, several)
        ]
    names = [place.name for place in shape.columns]
    return [dict(zip(names, row)) for row in zip(*several)]


def _is_text(value: Any) -> bool:
    return value.__class__ is str


def _is_number(value: Any) -> bool:
    return value.__class__ in _NUMBERS


def _is_moment(value: Any) -> bool:
    return value.__class__ is float


def _is_whole(value: Any) -> bool:
    return value.__class__ is int


def _are_texts(value: Any) -> bool:
    return value.__class__ is list and all(map(_is_text, value))


_FEW = frozenset(("kind", "host", "role", "cell", "source", "outcome", "reason"))
_OF_SUBJECT = ("kind", "host", "rank", "pid", "started_ticks", "gpu", "role")
_FIELDS = (
    "id",
    "kind",
    "subject",
    "cell",
    "source",
    "began",
    "took_s",
    "outcome",
    "reason",
    "data",
    "files",
    "redacted",
    "schema",
)
_IS_RIGHT: Dict[Path, Callable[[Any], bool]] = {
    **{(name,): _is_text for name in ("id", "kind", "cell", "source", "reason")},
    **{("subject", name): _is_number for name in ("rank", "pid", "started_ticks", "gpu")},
    **{("subject", name): _is_text for name in ("host", "role")},
    ("subject", "kind"): lambda value: _is_text(value) and value in _KINDS,
    ("outcome",): lambda value: _is_text(value) and value in _OUTCOMES,
    ("began",): _is_moment,
    ("took_s",): _is_moment,
    ("files",): _are_texts,
    ("redacted",): _is_whole,
    ("schema",): _is_whole,
}
