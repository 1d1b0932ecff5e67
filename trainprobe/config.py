"""`trainprobe.yaml`: what a team sets once. The command line wins over it.

The file is small, plain YAML: no aliases, no tags, no repeated keys. Whatever is wrong is named
with its file, line and key.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from trainprobe.errors import UsageError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

    Reader = Callable[[Node, str, str], Any]

FILE_NAME = "trainprobe.yaml"
WATCHED = True
LINTED = True
LARGEST_BYTES = 64 * 1024
DEEPEST = 8
MOST_RANKS = 1024
"""More ranks than any one machine runs; a larger number is a slip of the finger."""
LONGEST_S = 7 * 24 * 3600
_PAGE = "docs/settings.md shows the names."
Value = TypeVar("Value")


def _setting(default: Any, key: str, kind: str, says: str) -> Any:
    made: Callable[[], Any] = (
        dict if kind in ("seconds-by-name", "numbers-by-name") else lambda: default
    )
    return field(default_factory=made, metadata={"key": key, "kind": kind, "says": says})


@dataclass(frozen=True)
class Settings:
    """All settings, with the defaults that hold without a file. Times are in seconds."""

    nproc: int | None = _setting(
        None, "nproc", "ranks", "Ranks to start where neither --nproc nor --gpus is given."
    )
    imports: tuple[str, ...] | None = _setting(
        None,
        "imports",
        "names",
        "Modules that import_memory imports, in place of those that the script names.",
    )
    only: tuple[str, ...] = _setting((), "rungs.only", "names", "Climb these rungs and no other.")
    skip: tuple[str, ...] = _setting(
        (),
        "rungs.skip",
        "names",
        "Leave these rungs out; `lint` leaves the script's source unread.",
    )
    timeout_s: float | None = _setting(
        None,
        "timeouts.total_s",
        "seconds",
        "End the whole climb after this time and report what was learnt.",
    )
    rung_timeouts_s: Mapping[str, float] = _setting(
        {},
        "timeouts.rungs",
        "seconds-by-name",
        "Deadline of one launch of a rung, in place of the probe's own.",
    )
    first_output_s: float = _setting(
        120.0,
        "timeouts.first_output_s",
        "seconds",
        "Your command must show a first sign of life within this time.",
    )
    stall_s: float = _setting(
        30.0,
        "timeouts.stall_s",
        "seconds",
        "Your command counts as stalled when it shows no progress for this long.",
    )
    run_s: float = _setting(
        60.0,
        "timeouts.run_s",
        "seconds",
        "Your command has passed at one size when it ran this long without a fault.",
    )
    witness: bool = _setting(
        WATCHED,
        "witness",
        "yes-or-no",
        "Watch your command from inside: its steps, exceptions and collectives.",
    )
    lint: bool = _setting(
        LINTED,
        "lint",
        "yes-or-no",
        "Read your script with lint before it is run; its findings are evidence.",
    )
    at_most: Mapping[str, float] = _setting(
        {},
        "thresholds.at_most",
        "numbers-by-name",
        "A rung that measures more than this has failed.",
    )
    at_least: Mapping[str, float] = _setting(
        {},
        "thresholds.at_least",
        "numbers-by-name",
        "A rung that measures less than this has failed.",
    )


@dataclass(frozen=True)
class SettingRow:
    """One setting as its page shows it; `key` is the dotted path in the file."""

    key: str
    kind: str
    default: Any
    says: str


def setting_rows() -> tuple[SettingRow, ...]:
    """Return every setting, in the order of the dataclass."""
    defaults = Settings()
    return tuple(
        SettingRow(default=getattr(defaults, setting.name), **setting.metadata)
        for setting in fields(Settings)
    )


def read_settings(path: str | None = None) -> Settings:
    """Return the settings of `path`, or of ./trainprobe.yaml where there is one, or the defaults.

    Raises UsageError in one sentence, with file and line, where the file cannot be read or says
    something that is no setting.
    """
    if path is None:
        if not os.path.lexists(FILE_NAME):
            return Settings()
        path = FILE_NAME
    return settings_of(_text(path), path)


def settings_of(text: str, path: str) -> Settings:
    """Return the settings that `text` holds; `path` is only for messages."""
    names = {setting.metadata["key"]: setting.name for setting in fields(Settings)}
    readers = {row.key: _READERS[row.kind] for row in setting_rows()}
    return Settings(**{names[key]: value for key, value in values_of(text, path, readers).items()})


def values_of(text: str, path: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return what `text` holds by dotted key, each read by its reader. `path` is only for messages.

    Raises UsageError in one sentence, with file, line and key, for whatever is no such file.
    """
    root = _tree(text, path)
    if root is None or _is_null(root):
        return {}
    from yaml.nodes import MappingNode

    if not isinstance(root, MappingNode):
        raise _wrong(
            path, root, "the file must hold `name: value` lines", f"It is a {_shape(root)}; {_PAGE}"
        )
    return {
        key: readers[key](node, path, key)
        for key, node in _entries(root, path, "", readers).items()
    }


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"The settings file {path} cannot be read: {error.strerror}.", "Check --config."
        ) from None
    if len(raw) > LARGEST_BYTES:
        raise UsageError(
            f"The settings file {path} is larger than {LARGEST_BYTES // 1024} kB.",
            "It cannot be a settings file; check --config.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: this is not UTF-8 text.") from None


def _tree(text: str, path: str) -> Node | None:
    import yaml  # start-up time

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise UsageError(f"{path}: this is nested too deeply for a settings file.", _PAGE)
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(
                    f"{path}, line {event.start_mark.line + 1 if event.start_mark else 1}: aliases"
                    f" (*{event.anchor}) are not understood here.",
                    "Write the value out.",
                )
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        reasons = (getattr(error, name, None) for name in ("problem", "reason"))
        problem = next(filter(None, reasons), "it cannot be parsed")
        raise UsageError(f"{path}{where}: this is not YAML: {problem}.") from None


def _entries(
    node: MappingNode, path: str, prefix: str, names: Mapping[str, Any]
) -> dict[str, Node]:
    """Flatten the sections of the file into dotted keys, each with its node. Raises UsageError
    for an unknown or repeated key.
    """
    from yaml.nodes import MappingNode, ScalarNode

    found: dict[str, Node] = {}
    sections = {key.rpartition(".")[0] for key in names} - {""}
    allowed = {key[len(prefix) :].partition(".")[0] for key in names if key.startswith(prefix)}
    used: set[str] = set()
    for key_node, value in node.value:
        name = key_node.value if isinstance(key_node, ScalarNode) else ""
        if name not in allowed:
            proposal = _did_you_mean(f"{prefix}{name}", names, prefix, allowed)
            unknown = f"{prefix}{name or '(not a name)'} is no setting"
            raise _wrong(path, key_node, unknown, proposal)
        if name in used:
            twice = f"{prefix}{name} stands here a second time"
            raise _wrong(path, key_node, twice, "Keep one of the two.")
        used.add(name)
        full = f"{prefix}{name}"
        if full in sections:
            if _is_null(value):
                continue
            if not isinstance(value, MappingNode):
                needs = f"{full} must hold `name: value` lines, not a {_shape(value)}"
                raise _wrong(path, value, needs, _PAGE)
            found.update(_entries(value, path, f"{full}.", names))
        elif not _is_null(value):
            found[full] = value
    return found


def _did_you_mean(key: str, names: Mapping[str, Any], prefix: str, allowed: set[str]) -> str:
    import difflib

    last = key.rpartition(".")[2]
    near = difflib.get_close_matches(last, sorted(allowed), n=1, cutoff=0.6)
    if near:
        return f"Did you mean {prefix}{near[0]}?"
    elsewhere = [
        name
        for name in names
        if difflib.get_close_matches(last, [name.rpartition(".")[2]], n=1, cutoff=0.75)
    ]
    if elsewhere:
        return f"Did you mean {elsewhere[0]}?"
    return f"There are: {', '.join(sorted(allowed))}."


def _value(node: Node) -> Any:
    import yaml

    if not isinstance(node, yaml.ScalarNode):
        return None
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError):
        return None
    finally:
        loader.dispose()


def _is_null(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null"


def whole_number(most: int) -> Callable[[Node, str, str], int]:
    """Return the reader of a whole number from 1 to `most`."""

    def read(node: Node, path: str, key: str) -> int:
        value = _value(node)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise _wrong(
                path, node, f"{key} needs a whole number from 1 to {most}, not {_shown(node)}"
            )
        return value

    return read


def one_of(choices: Collection[str]) -> Callable[[Node, str, str], str]:
    """Return the reader of a word that is one of `choices`."""

    def read(node: Node, path: str, key: str) -> str:
        value = _value(node)
        if not isinstance(value, str) or value not in choices:
            raise _wrong(path, node, f"{key} needs one of {', '.join(choices)}, not {_shown(node)}")
        return value

    return read


def number(node: Node, path: str, key: str) -> float:
    return _number(node, path, key, "a number", -math.inf, math.inf)


def seconds(node: Node, path: str, key: str) -> float:
    needs = f"seconds, more than 0 and at most {LONGEST_S}"
    return _number(node, path, key, needs, 0, math.nextafter(LONGEST_S, math.inf))


def _number(node: Node, path: str, key: str, needs: str, above: float, below: float) -> float:
    value = _value(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value < below:
        raise _wrong(path, node, f"{key} needs {needs}, not {_shown(node)}")
    return float(value)


def _yes_or_no(node: Node, path: str, key: str) -> bool:
    value = _value(node)
    if not isinstance(value, bool):
        raise _wrong(path, node, f"{key} needs true or false, not {_shown(node)}")
    return value


def names_of(node: Node, path: str, key: str) -> tuple[str, ...]:
    import yaml

    if not isinstance(node, yaml.SequenceNode):
        raise _wrong(path, node, f"{key} needs a list of names such as [a, b], not {_shown(node)}")
    for item in node.value:
        if not isinstance(_value(item), str) or not _value(item).strip():
            raise _wrong(path, item, f"{key} needs names, not {_shown(item)}")
    return tuple(dict.fromkeys(item.value.strip() for item in node.value))


def by_name(
    read: Callable[[Node, str, str], Value], unit: str, allowed: Collection[str] | None = None
) -> Callable[[Node, str, str], dict[str, Value]]:
    """Return the reader of a table whose values `read` reads; its names are among `allowed`, or
    any.
    """

    def table(node: Node, path: str, key: str) -> dict[str, Value]:
        import yaml

        if not isinstance(node, yaml.MappingNode):
            raise _wrong(path, node, f"{key} needs lines of `name: {unit}`, not {_shown(node)}")
        values: dict[str, Value] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode) or name.value in values:
                says = f"{key} has a name that is no text or stands there twice: {_shown(name)}"
                raise _wrong(path, name, says)
            if allowed is not None and name.value not in allowed:
                raise _wrong(path, name, f"{key} knows {', '.join(allowed)}, not {_shown(name)}")
            values[name.value] = read(value, path, f"{key}.{name.value}")
        return values

    return table


_READERS: dict[str, Callable[[Node, str, str], Any]] = {
    "ranks": whole_number(MOST_RANKS),
    "names": names_of,
    "seconds": seconds,
    "seconds-by-name": by_name(seconds, "seconds"),
    "numbers-by-name": by_name(number, "number"),
    "yes-or-no": _yes_or_no,
}


def _shape(node: Node) -> str:
    return {"MappingNode": "table", "SequenceNode": "list"}.get(type(node).__name__, "single value")


def _shown(node: Node) -> str:
    return repr(node.value[:60]) if isinstance(node.value, str) else f"a {_shape(node)}"


def _wrong(path: str, node: Node, says: str, do: str = "") -> UsageError:
    return UsageError(f"{path}, line {node.start_mark.line + 1}: {says}.", do)
