"""Folders that must be one and the same on all nodes, by files that nodes wrote for each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainprobe.checks import spec_of
from trainprobe.facts.differences import Difference, check_of
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

NAME = "fs.shared"
SHARED, OWN = "the same disk", "a disk of its own"
MOST_ROWS = 256


@dataclass(frozen=True)
class PairFiles(Fact):
    """Whether two nodes saw the files that they wrote for each other in a folder."""

    members: tuple[str, str] = ("", "")
    folder: str = ""
    seen: bool = True


def parse_pair_files(record: Evidence) -> list[Fact]:
    members = set(fields.texts(record.data, "members"))
    found: list[Fact] = []
    for row in fields.items(record.data, "files")[:MOST_ROWS]:
        if not isinstance(row, Mapping) or not isinstance(row.get("seen"), bool):
            continue
        a, b, folder = (fields.text(row, name) for name in ("a", "b", "folder"))
        if {a, b} <= members and a != b and folder:
            base = (record.id,), record.cell, None
            found.append(PairFiles(*base, (a, b), folder, row["seen"]))
    return found


def join_shared_folders(facts: list[Fact]) -> list[Fact]:
    """A folder that some nodes share is meant to be shared. Where no two are seen to share it, it
    may be meant to be each node's own, which only warns.
    """
    tried = [fact for fact in facts if isinstance(fact, PairFiles)]
    folders = dict.fromkeys(fact.folder for fact in tried)
    return [
        *facts,
        *(
            one
            for folder in folders
            for one in _difference(folder, [fact for fact in tried if fact.folder == folder])
        ),
    ]


def _difference(folder: str, tried: Sequence[PairFiles]) -> Iterable[Difference]:
    first, *others = sorted(_camps(tried), key=lambda camp: (-len(camp), camp))
    apart = [one for one in tried if not one.seen]
    if not apart:
        return
    check = check_of(NAME)
    spec = spec_of(check)
    base = Difference(
        tuple(id_ for one in apart for id_ in one.evidence)[:8],
        tried[0].cell,
        name=f"{NAME}.{folder}",
        check=check,
        severity=spec.severity if spec and len(first) > 1 else "warning",
        who=spec.who if spec else "admin",
        fix=spec.fix if spec else "",
        source="each of two nodes looks for a file that the other wrote there",
    )
    # Without a try that failed between them two camps may well be one.
    odd = [
        name
        for camp in others
        if any(set(one.members) & set(camp) and set(one.members) & set(first) for one in apart)
        for name in camp
    ]
    if odd and len(first) > sum(map(len, others)):
        named = ((SHARED, tuple(first)), (OWN, tuple(odd)))
        yield replace(
            base,
            value=OWN,
            hosts=tuple(odd),
            majority=SHARED,
            majority_hosts=tuple(first),
            camps=named,
        )
        return
    camps = [first, odd] if len(first) > 1 and odd else [[name] for name in apart[0].members]
    rows = tuple((f"that of {camp[0]}", tuple(camp)) for camp in camps)
    hosts = tuple(name for camp in camps for name in camp)
    yield replace(base, value=rows[0][0], hosts=hosts, tie=True, camps=rows)


def _camps(tried: Sequence[PairFiles]) -> list[list[str]]:
    """The nodes that see each other's files, directly or through others."""
    camp = {name: [name] for one in tried for name in one.members}
    for one in tried:
        a, b = (camp[name] for name in one.members)
        if one.seen and a is not b:
            a += b
            camp.update(dict.fromkeys(b, a))
    return [sorted(found) for found in {id(found): found for found in camp.values()}.values()]
