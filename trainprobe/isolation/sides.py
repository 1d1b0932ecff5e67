"""Merges what the members of one group report about each other: no side alone can tell a dead
direction from a dead host.

The events come from other hosts and may hold anything: what has another shape counts as not
reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from trainprobe.isolation.trials import Link, Outcome, Try, telling

LEAST_LOST = 3  # of a series of 1000; at 1 % loss fewer come in 0.3 % of series
LEAST_LOST_SHARE = 0.002
# Where datagrams do not pass, TCP's retransmissions show the loss.
SEGMENTS_AGAIN, SEGMENTS_SHARE = 20, 0.005
# Members that overlapped for less time failed to meet for that reason alone.
OVERLAP_S = 1.5
LOOPBACK = ("127.", "::1")
_REFUSALS = {"refused", "reset", "foreign"}


@dataclass(frozen=True)
class Side:
    """One member's report. `ran` is whether its program ran at all, from `began` to `ended`, in
    seconds of one clock for all members.
    """

    name: str
    ran: bool = False
    says: str = ""
    answer: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)
    peers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    flaws: tuple[str, ...] = ()
    took_ms: float | None = None
    began: float = 0.0
    ended: float = 0.0


def side_of(
    name: str, events: Iterable[Mapping[str, Any]], says: str = "", ended: float = 0.0
) -> Side:
    """Read the events of node_pair.py. `ended` is when its last line arrived, by the clock of the
    caller.
    """
    own: Mapping[str, Any] = {}
    peers: dict[str, Mapping[str, Any]] = {}
    flaws: list[str] = []
    answer, took = "", None
    times: list[float] = []
    for event in events:
        at = _number(event.get("at"))
        times += [at] if at else []
        kind, label = event.get("event"), event.get("name")
        if kind == "note" and label == "self":
            own = event
        elif kind == "note" and label == "peer" and isinstance(event.get("peer"), str):
            peers[event["peer"]] = event
        elif kind == "fail":
            flaws.append("wrong-result" if event.get("kind") == "wrong-result" else "failed")
        elif kind == "measure" and label == "took_ms":
            took = _number(event.get("value")) or took
        elif kind == "result":
            answer, says = str(event.get("answer")), str(event.get("says", ""))[:500] or says
    lasted = max(times) - min(times) if times else 0.0
    began = ended - lasted
    return Side(name, bool(times), says, answer, own, peers, tuple(flaws), took, began, ended)


def judged(sides: Sequence[Side], arm: str) -> Try:
    """Return the try of this group: its outcome, what each direction showed, and one sentence."""
    members = tuple(side.name for side in sides)
    silent = [side for side in sides if not side.ran]
    if silent:
        says = "; ".join(f"{side.name}: {side.says or 'no sign of life'}" for side in silent)
        missing = tuple(side.name for side in silent)
        return Try(members, arm, "not_measured", how="silent", says=says, missing=missing)
    cannot = [side for side in sides if side.answer == "cannot"]
    if cannot:
        says = "; ".join(f"{side.name}: {side.says}" for side in cannot)
        return Try(members, arm, "not_measured", says=says)
    return _of_links(members, sides) if arm == "tcp" else _of_sums(members, sides, arm)


def files_seen(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Rows `a`, `b`, `folder`, `seen`: whether two members saw each other's files in a folder in
    which both had written one, as far as they could look.
    """
    found = []
    for a, b in combinations(sides, 2):
        looks = [_row(a, b).get("files"), _row(b, a).get("files")]
        for folder in sorted(_texts(a.own.get("written")) & _texts(b.own.get("written"))):
            seen = [look[folder] for look in looks if isinstance(look, Mapping) and folder in look]
            if seen:
                row = {"a": a.name, "b": b.name, "folder": folder}
                found.append({**row, "seen": all(one is True for one in seen)})
    return found


def _texts(value: Any) -> set[str]:
    listed = value if isinstance(value, (list, tuple)) else ()
    return {item for item in listed if isinstance(item, str)}


def _of_sums(members: tuple[str, ...], sides: Sequence[Side], arm: str) -> Try:
    bad = [side for side in sides if side.answer != "yes"]
    took = [side.took_ms for side in sides if side.took_ms is not None]
    measures = {"took_ms": max(took)} if took else {}
    if not bad:
        return Try(members, arm, "passed", says=sides[0].says, measures=measures)
    wrong = any("wrong-result" in side.flaws for side in bad)
    how = "wrong-result" if wrong else "failed"
    outcome: Outcome = "failed" if any(side.answer == "no" for side in bad) else "timed_out"
    says = "; ".join(f"{side.name}: {side.says or 'no answer before the deadline'}" for side in bad)
    return Try(members, arm, outcome, how=how, says=says, measures=measures)


def _of_links(members: tuple[str, ...], sides: Sequence[Side]) -> Try:
    mute = [
        side.name
        for side in sides
        if any(name not in side.peers for name in members if name != side.name)
    ]
    if mute:
        says = f"{' and '.join(mute)} did not report a result"
        missing = tuple(mute) if len(mute) < len(sides) else ()
        return Try(members, "tcp", "not_measured", says=says, missing=missing)
    for a, b in combinations(sorted(sides, key=lambda side: side.name), 2):
        overlap_s = min(a.ended, b.ended) - max(a.began, b.began)
        if not _met(a, b) and not _no_address(a, b) and overlap_s < OVERLAP_S:
            says = f"{a.name} and {b.name} did not run at the same time"
            return Try(members, "tcp", "not_measured", says=says)
    links = tuple(_link(a, b) for a in sides for b in sides if a is not b)
    flaws = [link for link in links if link.how]
    rtts = [link.rtt_ms for link in links if link.rtt_ms is not None]
    speeds = [link.mbps for link in links if link.mbps is not None]
    return Try(
        members,
        "tcp",
        "failed" if flaws else "passed",
        how=telling([link.how for link in flaws]) if flaws else "",
        says=(
            "; ".join(dict.fromkeys(link.says for link in flaws))
            or f"{', '.join(members)} reach each other on every port"
        )[:1000],
        links=links,
        measures={
            **({"rtt_ms": max(rtts)} if rtts else {}),
            **({"mbps": min(speeds)} if speeds else {}),
        },
    )


def _met(a: Side, b: Side) -> bool:
    return _row(a, b).get("heard") is True or _row(b, a).get("heard") is True


def _no_address(a: Side, b: Side) -> bool:
    """Whether one of them could not resolve the other and so did not wait for it."""
    return bool(_text(_row(a, b).get("trouble")) or _text(_row(b, a).get("trouble")))


def _row(a: Side, b: Side) -> Mapping[str, Any]:
    return a.peers.get(b.name, {})


def _link(a: Side, b: Side) -> Link:
    """The direction from `a` to `b`, from the reports of both."""
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
        trouble = trouble or f"{b.name} is {address} there, its own loopback"
        return "wrong-address", f"{way}: {trouble}"
    there, home = _states(row, b), _states(back, a)
    if there and "ok" not in there.values():
        return _nothing(a, b, there, home)
    # A port that accepts and stays silent belongs to a busy host.
    bad = {port: state for port, state in there.items() if state not in ("ok", "silent")}
    if bad:
        how = "refused" if set(bad.values()) <= _REFUSALS else "blocked-ports"
        ports = ", ".join(f"{port} {state}" for port, state in list(bad.items())[:6])
        return how, f"{way}: {len(bad)} of {len(there)} ports do not answer ({ports})"
    if row.get("stuck") is True:
        says = f"{way}: small messages pass, but almost nothing of a larger transfer arrives"
        return "large-packets", says
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
    """No port of `b` answers `a`. Datagrams show which direction is dead."""
    way = f"{a.name} to {b.name}"
    address, own = _text(_row(a, b).get("address")), _text(b.own.get("address"))
    arrive, return_ = _count(_row(b, a), "datagrams") > 0, _count(_row(a, b), "datagrams") > 0
    states = set(there.values())
    elsewhere = bool(own and address) and address != own and not own.startswith(LOOPBACK)
    if states <= _REFUSALS:
        if elsewhere:
            return "wrong-address", f"{way}: {address} answers, but {b.name} is {own} to itself"
        return "refused", f"{way}: all {len(there)} ports are refused"
    if arrive and return_ and states == {"silent"}:
        return "silent", f"{way}: connections are accepted, but no answer comes"
    if arrive and return_:
        return "blocked-ports", f"{way}: none of {len(there)} ports answers, datagrams pass"
    if arrive and "ok" not in home.values():
        return "", ""  # this direction is open; answers do not come back
    if elsewhere:
        says = f"{way}: nothing arrives at {address}, and {b.name} is {own} to itself"
        return "wrong-address", says
    if return_ or "ok" in home.values():
        return "one-way", f"{way}: nothing arrives, while {b.name} reaches {a.name}"
    return "unreachable", f"{way}: nothing arrives on any of {len(there)} ports"


def _states(row: Mapping[str, Any], other: Side) -> dict[str, str]:
    """The state of each port, without those that another program uses on the other host."""
    ports, taken = row.get("ports"), other.own.get("taken")
    taken = taken if isinstance(taken, Mapping) else {}
    rows = list(ports.items())[:256] if isinstance(ports, Mapping) else []
    return {str(port): str(state) for port, state in rows if port not in taken}


def _lost(row: Mapping[str, Any]) -> tuple[int, int]:
    """How many of the series did not reach this member, without those that its full buffer
    dropped; and the length of the series.
    """
    lost = max(0, _count(row, "series_missing") - _count(row, "dropped_here"))
    return lost, _count(row, "series_theirs")


def _count(row: Mapping[str, Any], name: str) -> int:
    value = _number(row.get(name))
    return int(value) if value is not None and 0 <= value < 1e9 else 0


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and abs(value) < 1e15 else None


def _text(value: Any) -> str:
    return value[:300] if isinstance(value, str) else ""
