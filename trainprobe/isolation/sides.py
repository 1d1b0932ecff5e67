"""What the members of one group told of each other, put together: no side alone can tell a dead way
from a dead host.

The events come from other hosts and may hold anything: what is not of the expected shape counts as
not told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainprobe.isolation.trials import Link, Outcome, Try, telling

LEAST_LOST = 3  # of a series of 1000; at 1 % loss fewer come in 0.3 % of series
LEAST_LOST_SHARE = 0.002
SEGMENTS_AGAIN, SEGMENTS_SHARE = (
    20,
    0.005,
)  # where datagrams do not pass and TCP's own repetitions have to tell
# members that were not there at the same time for so long have not met for that reason alone
OVERLAP_S = 1.5
LOOPBACK = ("127.", "::1")


@dataclass(frozen=True)
class Side:
    """One member's words. `spoke` is whether its program ran at all; `began` and `ended` bound
    that, in seconds of one clock for all members.
    """

    name: str
    spoke: bool = False
    says: str = ""
    answer: str = ""
    here: Mapping[str, Any] = field(default_factory=dict)
    peers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()
    took_ms: float | None = None
    began: float = 0.0
    ended: float = 0.0


def side_of(
    name: str, events: Iterable[Mapping[str, Any]], says: str = "", ended: float = 0.0
) -> Side:
    """Read the events of node_pair.py. `ended` is when its last word came, by the clock of
    whoever asked.
    """
    here: Mapping[str, Any] = {}
    peers: dict[str, Mapping[str, Any]] = {}
    flaws: list[str] = []
    answer, took = "", None
    times: list[float] = []
    for event in events:
        at = _number(event.get("at"))
        times += [at] if at else []
        kind, label = event.get("event"), event.get("name")
        if kind == "note" and label == "self":
            here = event
        elif kind == "note" and label == "peer" and isinstance(event.get("peer"), str):
            peers[event["peer"]] = event
        elif kind == "fail":
            flaws.append("wrong-result" if event.get("kind") == "wrong-result" else "failed")
        elif kind == "measure" and label == "took_ms":
            took = _number(event.get("value")) or took
        elif kind == "result":
            answer, says = str(event.get("answer")), str(event.get("says", ""))[:500] or says
    lasted = max(times) - min(times) if times else 0.0
    return Side(
        name, bool(times), says, answer, here, peers, tuple(flaws), took, ended - lasted, ended
    )


def judged(sides: Sequence[Side], arm: str) -> Try:
    """Return the try of this group: its outcome, what each direction showed, and one sentence."""
    members = tuple(side.name for side in sides)
    missing = tuple(side.name for side in sides if not side.spoke)
    if missing:
        says = "; ".join(
            f"{side.name}: {side.says or 'no sign of life'}" for side in sides if not side.spoke
        )
        return Try(members, arm, "not_measured", how="silent", says=says, missing=missing)
    cannot = [side for side in sides if side.answer == "cannot"]
    if cannot:
        return Try(
            members,
            arm,
            "not_measured",
            says="; ".join(f"{side.name}: {side.says}" for side in cannot),
        )
    return _of_links(members, sides) if arm == "tcp" else _of_sums(members, sides, arm)


def _of_sums(members: tuple[str, ...], sides: Sequence[Side], arm: str) -> Try:
    bad = [side for side in sides if side.answer != "yes"]
    took = [side.took_ms for side in sides if side.took_ms is not None]
    measures = {"took_ms": max(took)} if took else {}
    if not bad:
        return Try(members, arm, "passed", says=sides[0].says, measures=measures)
    hows = [flaw for side in bad for flaw in side.flaws] or ["failed"]
    outcome: Outcome = "failed" if any(side.answer == "no" for side in bad) else "timed_out"
    says = "; ".join(f"{side.name}: {side.says or 'no answer before the deadline'}" for side in bad)
    return Try(
        members,
        arm,
        outcome,
        how="wrong-result" if "wrong-result" in hows else "failed",
        says=says,
        measures=measures,
    )


def _of_links(members: tuple[str, ...], sides: Sequence[Side]) -> Try:
    untold = [
        side.name
        for side in sides
        if any(name not in side.peers for name in members if name != side.name)
    ]
    if untold:
        says = f"{' and '.join(untold)} did not tell what became of it"
        return Try(
            members,
            "tcp",
            "not_measured",
            says=says,
            missing=tuple(untold) if len(untold) < len(sides) else (),
        )
    unmet = [
        (a, b)
        for a in sides
        for b in sides
        if a.name < b.name and not _met(a, b) and not _no_address(a, b)
    ]
    apart = [
        (a.name, b.name)
        for a, b in unmet
        if min(a.ended, b.ended) - max(a.began, b.began) < OVERLAP_S
    ]
    if apart:
        return Try(
            members,
            "tcp",
            "not_measured",
            says=f"{' and '.join(apart[0])} were not there at the same time",
        )
    links = tuple(_link(a, b) for a in sides for b in sides if a is not b)
    flaws = [link for link in links if link.how]
    measures: dict[str, float] = {}
    rtts = [link.rtt_ms for link in links if link.rtt_ms is not None]
    speeds = [link.mbps for link in links if link.mbps is not None]
    if rtts:
        measures["rtt_ms"] = max(rtts)
    if speeds:
        measures["mbps"] = min(speeds)
    says = (
        "; ".join(dict.fromkeys(link.says for link in flaws))
        or f"{', '.join(members)} reach each other on every port"
    )
    how = telling([link.how for link in flaws]) if flaws else ""
    return Try(
        members,
        "tcp",
        "failed" if flaws else "passed",
        how=how,
        says=says[:1000],
        links=links,
        measures=measures,
    )


def _met(a: Side, b: Side) -> bool:
    return _row(a, b).get("heard") is True or _row(b, a).get("heard") is True


def _no_address(a: Side, b: Side) -> bool:
    """One of them could not find out where the other is, and so did not wait for it."""
    return bool(_text(_row(a, b).get("trouble")) or _text(_row(b, a).get("trouble")))


def _row(a: Side, b: Side) -> Mapping[str, Any]:
    return a.peers.get(b.name, {})


def _link(a: Side, b: Side) -> Link:
    """The way from `a` to `b`, from what both have seen."""
    row = _row(a, b)
    how, says = _flaw(a, b)
    slow = "" if how in ("", "loss") else how  # what does not connect has no speed
    rtt = None if slow else _number(row.get("rtt_least_ms"))
    mbps = None if slow else _number(row.get("mbps"))
    return Link(a.name, b.name, how, says, rtt, mbps or None)


def _flaw(a: Side, b: Side) -> tuple[str, str]:
    row, back = _row(a, b), _row(b, a)
    way = f"{a.name} to {b.name}"
    address, trouble = _text(row.get("address")), _text(row.get("trouble"))
    if trouble or address.startswith(LOOPBACK):
        return (
            "wrong-address",
            f"{way}: {trouble or f'{b.name} is {address} there, its own loopback'}",
        )
    there, home = _states(row, b), _states(back, a)
    if there and "ok" not in there.values():
        return _nothing(a, b, there, home)
    bad = {
        port: state for port, state in there.items() if state not in ("ok", "silent")
    }  # one that accepts and is slow to speak is busy
    if bad:
        refused = all(state in ("refused", "reset", "foreign") for state in bad.values())
        ports = ", ".join(f"{port} {state}" for port, state in list(bad.items())[:6])
        return (
            "refused" if refused else "blocked-ports"
        ), f"{way}: {len(bad)} of {len(there)} ports do not answer ({ports})"
    if row.get("stuck") is True:
        return (
            "large-packets",
            f"{way}: small messages pass, and of a larger transfer next to nothing arrives",
        )
    lost, of = _lost(back)
    if lost >= LEAST_LOST and lost >= LEAST_LOST_SHARE * of:
        return "loss", f"{way}: {lost} of {of} datagrams were lost"
    again, segments = _number(row.get("segments_again")) or 0, _number(row.get("segments")) or 0
    if not of and again >= SEGMENTS_AGAIN and again >= SEGMENTS_SHARE * segments:
        return "loss", f"{way}: TCP sent {again:.0f} of {segments:.0f} segments again"
    return "", ""


def _nothing(
    a: Side, b: Side, there: Mapping[str, str], home: Mapping[str, str]
) -> tuple[str, str]:
    """No port of `b` answers `a`. Datagrams tell which way is dead."""
    way, address, own = (
        f"{a.name} to {b.name}",
        _text(_row(a, b).get("address")),
        _text(b.here.get("address")),
    )
    arrive, return_ = _count(_row(b, a), "datagrams") > 0, _count(_row(a, b), "datagrams") > 0
    states = set(there.values())
    elsewhere = bool(own and address) and address != own and not own.startswith(LOOPBACK)
    if states <= {"refused", "reset", "foreign"}:
        if elsewhere:
            return "wrong-address", f"{way}: {address} answers, but {b.name} is {own} to itself"
        return "refused", f"{way}: all {len(there)} ports are refused"
    if arrive and return_:
        return (
            ("silent", f"{way}: connections are accepted and nobody answers")
            if states == {"silent"}
            else ("blocked-ports", f"{way}: none of {len(there)} ports answers, datagrams pass")
        )
    if arrive and "ok" not in home.values():
        return "", ""  # this way is open; answers do not come back
    if elsewhere:
        return (
            "wrong-address",
            f"{way}: nothing arrives at {address}, and {b.name} is {own} to itself",
        )
    if return_ or "ok" in home.values():
        return "one-way", f"{way}: nothing arrives, while {b.name} reaches {a.name}"
    return "unreachable", f"{way}: nothing arrives on any of {len(there)} ports"


def _states(row: Mapping[str, Any], other: Side) -> dict[str, str]:
    """The ports, without those that something else uses on the other host."""
    ports, taken = row.get("ports"), other.here.get("taken")
    taken = taken if isinstance(taken, Mapping) else {}
    return (
        {str(port): str(state) for port, state in list(ports.items())[:256] if port not in taken}
        if isinstance(ports, Mapping)
        else {}
    )


def _lost(row: Mapping[str, Any]) -> tuple[int, int]:
    """How many of the series did not reach this member, beside those that its own full buffer
    dropped; and how long the series was.
    """
    return max(0, _count(row, "series_missing") - _count(row, "dropped_here")), _count(
        row, "series_theirs"
    )


def _count(row: Mapping[str, Any], name: str) -> int:
    value = _number(row.get(name))
    return int(value) if value is not None and 0 <= value < 1e9 else 0


def _number(value: Any) -> float | None:
    return (
        float(value)
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) < 1e15
        and math.isfinite(value)
        else None
    )


def _text(value: Any) -> str:
    return value[:300] if isinstance(value, str) else ""
