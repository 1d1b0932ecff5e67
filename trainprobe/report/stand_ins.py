"""A report for strangers: names of hosts and users, folders and addresses become stand-ins, the
same one each time, and a ledger says which is which.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterable
from typing import Any

from trainprobe.model import diagnosis
from trainprobe.model.codec import from_json, to_json
from trainprobe.model.diagnosis import (
    Family,
    RankState,
    Report,
    Risk,
    RungOutcome,
    Verdict,
    Who,
)
from trainprobe.model.waits import SuspectHow

LEDGER_SCHEMA = "trainprobe.ledger/1"
_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_ADDRESS_6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-fA-F:]{0,36}::|(?:[0-9a-fA-F]{1,4}:){7})[0-9a-fA-F:]{4,39}(?![\w:])"
)
_EVERYBODYS_ADDRESS = re.compile(r"(?:127\.|0\.0\.0\.0$|255\.)")
_HARDWARE = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_URL_HOST = re.compile(r"(?<=://)[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}")
# The folders of a file; what installed libraries and the system call their own stays, since it
# tells of versions and of nobody's work.
_PATH = re.compile(r"(?<![\w.:/])(?:~|/[\w.+@-]{1,255})(?:/[\w.+@%=-]{1,255}){0,62}/?")
_SYSTEMS = ("/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/run")
_LIBRARIES = re.compile(r"/(?:site-packages|dist-packages|lib/python3\.\d{1,2})(?=/)")
_HOME = re.compile(r"/(?:home|users|Users|export/home)/([\w.-]{1,64})")
PUBLIC = ("localhost", "pytorch.org", "huggingface.co", "github.com", "docs.nvidia.com")
_LEAST_NAME = 2
_OUR_WORDS = (
    "host",
    "hosts",
    "rank",
    "ranks",
    "node",
    "nodes",
    "train",
    "job",
    "case",
    "localhost",
)
_IDS = ("id", "docs", "schema")  # of causes and rungs, and nobody's names
# What the report's own types call their fields and values is nobody's name.
_WORDS = frozenset(
    word
    for kind in (Verdict, RankState, RungOutcome, Risk, Who, Family, SuspectHow)
    for word in typing.get_args(kind)
)
_FIELDS = frozenset(
    part.name
    for kind in vars(diagnosis).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    for part in dataclasses.fields(kind)
)


class StandIns:
    """Replaces names in texts. `hosts` and `users` are the names that are known from elsewhere;
    more users are learnt from home folders.
    """

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        self._given: dict[str, dict[str, str]] = {}
        named = {host for host in hosts if len(host) >= _LEAST_NAME and host not in _OUR_WORDS}
        self._hosts = sorted(named, key=_longest)
        self._users = {user for user in users if len(user) > _LEAST_NAME and user != "root"}
        for host in sorted(self._hosts):
            self._known("host", host)
        self._learn()

    def ledger(self) -> str:
        """What stands for what, as JSON; it is for the owner of the job alone."""
        rows = {
            stand_in: name for names in self._given.values() for name, stand_in in names.items()
        }
        return json.dumps({"schema": LEDGER_SCHEMA, "stand_ins": rows}, indent=2) + "\n"

    def text(self, text: str) -> str:
        """Return `text` with stand-ins."""
        for match in _HOME.finditer(text):
            if match[1] not in self._users and len(match[1]) > _LEAST_NAME:
                self._users.add(match[1])
                self._learn()
        text = _MAIL.sub(lambda match: f"{self._known('mail', match[0])}@example.com", text)
        text = _PATH.sub(self._path, text)
        text = self._names.sub(self._name, text) if self._names is not None else text
        text = _URL_HOST.sub(self._url_host, text)
        text = _HARDWARE.sub(lambda match: self._known("hardware", match[0].lower()), text)
        text = _ADDRESS_6.sub(lambda match: self._known("address6", match[0].lower()), text)
        return _ADDRESS.sub(self._address, text)

    def data(self, data: Any) -> Any:
        """Return plain data with stand-ins in each of its texts."""
        if isinstance(data, str):
            return data if data in _WORDS else self.text(data)
        if isinstance(data, dict):
            return {
                self._key(str(name)): value if name in _IDS else self.data(value)
                for name, value in data.items()
            }
        return [self.data(item) for item in data] if isinstance(data, (list, tuple)) else data

    def _key(self, name: str) -> str:
        return name if name in _FIELDS else self.text(name)

    def _learn(self) -> None:
        names = [
            *(rf"(?<![A-Za-z0-9_])(?:{re.escape(host)})(?![A-Za-z0-9])" for host in self._hosts),
            *(rf"(?<![\w-])(?:{re.escape(user)})(?![\w-])" for user in sorted(self._users)),
        ]
        self._names = re.compile("|".join(names)) if names else None

    def _known(self, kind: str, name: str) -> str:
        given = self._given.setdefault(kind, {})
        return given.setdefault(name, f"{kind}{len(given) + 1}")

    def _name(self, match: re.Match[str]) -> str:
        return self._known("host" if match[0] in self._hosts else "user", match[0])

    def _address(self, match: re.Match[str]) -> str:
        if _EVERYBODYS_ADDRESS.match(match[0]):
            return match[0]
        return self._known("address", match[0])

    def _url_host(self, match: re.Match[str]) -> str:
        name = match[0]
        public = any(name == one or name.endswith(f".{one}") for one in PUBLIC)
        known = name in self._given.get("host", {}).values() or _ADDRESS.fullmatch(name)
        return name if public or known else self._known("host", name)

    def _path(self, match: re.Match[str]) -> str:
        path = match[0]
        if path in ("~", "/") or (path.startswith(_SYSTEMS) and not _LIBRARIES.search(path)):
            return path
        library = _LIBRARIES.search(path)
        if library is not None:
            folder, kept = path[: library.start()], path[library.start() :]
        else:
            folder, slash, name = path.rpartition("/")
            kept = f"{slash}{name}"
        if folder in ("", "~") or folder.startswith(_SYSTEMS):
            return path if library or folder.startswith(_SYSTEMS) else self._known_file(path)
        return f"/{self._known('folder', folder)}{kept}"

    def _known_file(self, path: str) -> str:
        """A folder right below the root: `/data` tells little, and `/data/x` ends up here too."""
        return path if path.count("/") < 2 else f"/{self._known('folder', path)}"


def for_strangers(report: Report, users: Iterable[str] = ()) -> tuple[Report, str]:
    """Return `report` with stand-ins, and the ledger."""
    hosts = {row.host for row in report.world.ranks}
    hosts |= {host for suspect in report.suspects for host in suspect.hosts}
    hosts |= {host for cause in report.causes for host in cause.hosts}
    short = {host.partition(".")[0] for host in hosts}
    stand_ins = StandIns(hosts | short, users)
    return from_json(Report, stand_ins.data(to_json(report))), stand_ins.ledger()


def _longest(name: str) -> tuple[int, str]:
    return -len(name), name
