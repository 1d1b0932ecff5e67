"""The members of a pair test: the request in TRAINPROBE_PAIR, and what a member sees of others."""

from __future__ import annotations

import json
import os
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Dict, List, Set, Tuple

import _emit


@dataclass
class PairRequest:
    """Members listen on `ports` and UDP `datagrams`; `meet_s`, `end_s` count from the start."""

    me: str
    members: List[Tuple[str, str]]  # name, address; an empty address is looked up by name
    ports: List[int]
    datagrams: int
    token: bytes
    arm: str = "tcp"
    meeting_port: int = 29500
    meet_s: float = 5.0
    end_s: float = 15.0
    local_rank: int = 0
    paths: List[str] = field(default_factory=list)

    @property
    def rank(self) -> int:
        return [name for name, _ in self.members].index(self.me)


@dataclass
class Peer:
    """Another member as this one sees it. Counters of datagrams: `seen` are numbers of its
    series that came, `their_seen` how many of ours it says it got.
    """

    name: str
    place: int
    address: str = ""
    family: int = socket.AF_INET
    trouble: str = ""  # why its address cannot be used
    heard: bool = False  # anything from it, by whatever way
    last: float = 0.0  # when, of time.monotonic()
    datagrams: int = 0
    received: Set[int] = field(default_factory=set)
    highest: int = 0
    their_sent: int = 0
    their_highest: int = 0
    their_seen: int = 0
    sent: int = 0
    series_over: bool = False
    their_series_over: bool = False
    accepted: int = 0  # TCP connections from it that showed our token
    bye: bool = False
    ports: Dict[int, str] = field(default_factory=dict)
    found: Dict[str, Any] = field(default_factory=dict)


def read_request() -> PairRequest:
    """Read TRAINPROBE_PAIR; anything else than what is expected answers `cannot`."""
    try:
        fields = json.loads(os.environ["TRAINPROBE_PAIR"])
        members = [
            (str(item["name"]), str(item.get("address") or "")) for item in fields["members"]
        ]
        request = PairRequest(
            str(fields["me"]),
            members,
            [int(port) for port in fields["ports"]],
            int(fields["datagrams"]),
            str(fields["token"]).encode()[:16].ljust(16, b"."),
        )
        request.arm = str(fields.get("arm", "tcp"))
        request.meeting_port = int(fields.get("meeting_port", 29500))
        request.meet_s = float(fields.get("meet_s", 5.0))
        request.end_s = float(fields.get("end_s", 15.0))
        request.local_rank = int(fields.get("local_rank", 0))
        request.paths = [str(path) for path in fields.get("paths", ())][:24]
        fits = (
            request.me in dict(members)
            and 2 <= len(members) <= 4096
            and request.arm in ("tcp", "gloo", "nccl")
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _emit.result(
            "cannot",
            f"TRAINPROBE_PAIR does not say who takes part: {type(error).__name__}: {error}.",
        )
    if not fits:
        _emit.result("cannot", "TRAINPROBE_PAIR names no group of which this host is a member.")
    return request


def look_up(
    names: List[Tuple[str, str]], port: int, within_s: float
) -> Dict[str, Tuple[int, str, str]]:
    """Return family, address and trouble of each (name, address); a thread may hang in each."""
    found: Dict[str, Tuple[int, str, str]] = {}

    def item(name: str, address: str) -> None:
        try:
            family, _, _, _, where = socket.getaddrinfo(
                address or name, port, type=socket.SOCK_STREAM
            )[0]
            found[name] = (int(family), str(where[0]), "")
        except OSError as error:
            found[name] = (
                0,
                "",
                f"{address or name} has no address here: {error.strerror or error}",
            )

    threads = [threading.Thread(target=item, args=pair, daemon=True) for pair in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(within_s / max(1, len(threads)) if len(threads) > 1 else within_s)
    return {
        name: found.get(name, (0, "", f"{name} could not be looked up within {within_s:g} s"))
        for name, _ in names
    }
