"""`/etc/trainprobe/site.yaml`: what the site's administrators set for everybody. It wins over
trainprobe.yaml and the command line.

No option and no variable of a user's changes its path. It counts only if root alone can write it
and every folder above it; else it is ignored, with a note. It is read as trainprobe.yaml is: small,
plain YAML, no aliases, no tags, no repeated keys.
A file that counts but cannot be understood forbids what it might have forbidden, and stops nobody:
a typing error must not drain a cluster.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from trainprobe.errors import UsageError

SITE_FILE = "/etc/trainprobe/site.yaml"
LARGEST_BYTES = 64 * 1024
WIDEST, MOST_DAYS, MOST_KEPT = 4096, 3650, 100_000
BUDGETS = ("quick", "standard", "deep")
SLOTS = ("step", "prolog", "epilog", "healthcheck", "taskprolog")
ANSWERS = ("pass", "fail")
_ROOT = 0


def _rule(default: Any, key: str, says: str) -> Any:
    return field(default_factory=lambda: default, metadata={"key": key, "says": says})


@dataclass(frozen=True)
class Site:
    """The rules of the site, with the defaults that hold without a file. `notes` are sentences
    that whoever runs the tool must see.
    """

    forbid: tuple[str, ...] = _rule(
        (), "forbid", "Budgets that nobody but root may use: `standard`, `deep`."
    )
    fan_out: int | None = _rule(None, "fan_out", "Nodes that are asked at the same time, at most.")
    keep_in: str = _rule(
        "",
        "keep.folder",
        "Where the cases of the administrators' slots are kept; without it they keep none.",
    )
    keep_days: int | None = _rule(None, "keep.days", "Cases there are removed after so many days.")
    keep_most: int | None = _rule(
        None, "keep.most", "Only so many cases are kept there, the newest."
    )
    thresholds: Mapping[str, float] = _rule(
        {}, "thresholds", "What a check is held against, by its id, in the check's own unit."
    )
    paths: tuple[str, ...] = _rule(
        (),
        "paths",
        "Folders that every node must have, such as /home and /data; the administrators' slots ask"
        " each.",
    )
    leave_out: tuple[str, ...] = _rule((), "leave_out", "Checks that are not made here, by id.")
    drain: tuple[str, ...] = _rule(
        ("root",), "drain", "Users for whom `--drain` may set nodes to drain."
    )
    inconclusive: Mapping[str, Literal["pass", "fail"]] = _rule(
        {},
        "inconclusive",
        "By slot: does a node pass that could not be looked at? (`pass` or `fail`)",
    )
    stop_s: Mapping[str, float] = _rule(
        {}, "stop_s", "By slot: seconds after which all is over, whatever has not answered."
    )
    path: str = ""
    notes: tuple[str, ...] = ()

    def refuse(self, budget: str, uid: int) -> None:
        """Raise UsageError where a user may not use this budget."""
        if uid != _ROOT and budget in self.forbid:
            raise UsageError(
                f"This site does not allow --{budget} ({self.path}).",
                f"Use --{self.largest(uid)}, or ask the administrators.",
            )

    def largest(self, uid: int) -> str:
        """Return the largest budget that a user may use."""
        return [budget for budget in BUDGETS if uid == _ROOT or budget not in self.forbid][-1]

    def may_drain(self, uid: int) -> bool:
        """May this user let us drain nodes? Root may."""
        return uid == _ROOT or bool({str(uid), _user(uid)} & set(self.drain))

    def width(self, asked: int | None) -> int | None:
        """Return how many nodes may be asked at once where `asked` is wanted; None for no limit."""
        given = [limit for limit in (asked, self.fan_out) if limit is not None]
        return min(given) if given else None

    def unknown(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return a sentence for each rule about a check that is none of `ids`: such a rule has no
        effect.
        """
        known = set(ids)
        return tuple(
            f"{self.path} names the check {name}, which there is not."
            for name in (*self.thresholds, *self.leave_out)
            if name not in known
        )


@dataclass(frozen=True)
class SiteRow:
    """One rule as its page shows it; `key` is the dotted path in the file."""

    key: str
    default: Any
    says: str


def site_rows() -> tuple[SiteRow, ...]:
    """Return every rule, in the order of the dataclass."""
    defaults = Site()
    return tuple(
        SiteRow(default=getattr(defaults, rule.name), **rule.metadata)
        for rule in fields(Site)
        if rule.metadata
    )


def read_site(path: str = SITE_FILE, owner: int = _ROOT) -> Site:
    """Return the rules in `path`, or the defaults where there is no such file. Never raises.
    `owner` and `path` are for tests.
    """
    try:
        raw = _bytes(path, owner)
    except FileNotFoundError:
        return Site()
    except _NotTheirs as why:
        ignored = (
            f"{path} is ignored: {why}. It must be a file of root's that nobody else can write, in"
            " folders that nobody else can write."
        )
        return Site(notes=(ignored,))
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return Site(notes=(f"{path} is ignored: {error.strerror}.",))
        return _cautious(path, str(error.strerror))
    if len(raw) > LARGEST_BYTES:
        return _cautious(path, f"it is larger than {LARGEST_BYTES // 1024} kB")
    try:
        return site_of(raw.decode("utf-8-sig"), path)
    except UnicodeDecodeError:
        return _cautious(path, "it is not UTF-8 text")
    except UsageError as error:
        return _cautious(path, error.says.rstrip("."))


def _cautious(path: str, why: str) -> Site:
    """What holds where the file cannot be understood: the site may have forbidden it."""
    note = (
        "The site's rules could not be read, so nobody may use --deep or --drain:"
        f" {why if path in why else f'{path}: {why}'}."
    )
    return Site(forbid=("deep",), drain=(), path=path, notes=(note,))


def site_of(text: str, path: str) -> Site:
    """Return the rules that `text` holds; `path` is for messages. Raises UsageError where it
    holds something that is no rule.
    """
    from trainprobe import config

    readers = {
        "forbid": config.names_of,
        "fan_out": config.whole_number(WIDEST),
        "keep.folder": _folder,
        "keep.days": config.whole_number(MOST_DAYS),
        "keep.most": config.whole_number(MOST_KEPT),
        "thresholds": config.by_name(config.number, "number"),
        "paths": _folders,
        "leave_out": config.names_of,
        "drain": config.names_of,
        "inconclusive": config.by_name(config.one_of(ANSWERS), "pass or fail", SLOTS),
        "stop_s": config.by_name(config.seconds, "seconds", SLOTS),
    }
    names = {rule.metadata["key"]: rule.name for rule in fields(Site) if rule.metadata}
    found = {names[key]: value for key, value in config.values_of(text, path, readers).items()}
    odd = [budget for budget in found.get("forbid", ()) if budget not in BUDGETS[1:]]
    if odd:
        raise UsageError(f"{path}: forbid knows {' and '.join(BUDGETS[1:])}, not {odd[0][:40]!r}.")
    return replace(Site(path=path), **found)


class _NotTheirs(Exception):  # noqa: N818 - it says why a file does not count
    """The file is not one that only root can write."""


def _bytes(path: str, owner: int) -> bytes:
    """Return what the file holds. What is checked is the file that was opened and the folders of
    its real place, not what a name leads to later.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _NotTheirs("it is no plain file")
        _theirs(found, owner, "it")
        folder = os.path.dirname(os.path.realpath(f"/proc/self/fd/{fd}"))
        while True:
            _theirs(os.stat(folder), owner, folder)
            if folder == os.path.dirname(folder):
                break
            folder = os.path.dirname(folder)
        return os.pread(fd, LARGEST_BYTES + 1, 0)
    finally:
        os.close(fd)


def _theirs(found: os.stat_result, owner: int, what: str) -> None:
    if found.st_uid not in (owner, _ROOT):
        raise _NotTheirs(f"{what} belongs to user {found.st_uid}")
    sticky_folder = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky_folder:
        raise _NotTheirs(f"others may write {what} (mode {stat.S_IMODE(found.st_mode):04o})")


def _folders(node: Any, path: str, key: str) -> tuple[str, ...]:
    from trainprobe.config import names_of

    names_of(node, path, key)
    return tuple(dict.fromkeys(_folder(item, path, key) for item in node.value))


def _folder(node: Any, path: str, key: str) -> str:
    value = node.value if isinstance(node.value, str) else ""
    odd = "\0" in value or ":" in value or os.path.normpath(value) in ("/", "//")
    if odd or not os.path.isabs(value):
        raise UsageError(
            f"{path}, line {node.start_mark.line + 1}: {key} needs the full path of a folder."
        )
    return os.path.normpath(value)


def _user(uid: int) -> str:
    import pwd  # asks the site's directory service, so only where it matters

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
