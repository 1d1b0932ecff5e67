"""What the verdict on a live job says in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.facts import Job
from trainprobe.waits.divergence import ranks_say
from trainprobe.waits.standings import Standing
from trainprobe.waits.suspects import SuspectGroup


def nowhere(job: Job) -> str:
    silent = [host for host, _ in job.silent]
    if silent:
        return (
            "no process on the hosts that answered, and"
            f" {', '.join(silent[:4])}{' and others' if len(silent) > 4 else ''} did not"
        )
    return f"no process on {'any host of the job' if job.hosts else 'this host'}"


def go_on(ranks: Sequence[int]) -> str:
    if not ranks:
        return "it goes on"
    return f"{ranks_say(ranks)} {'goes' if len(ranks) == 1 else 'go'} on"


def headline(group: SuspectGroup, ranks: Sequence[Standing]) -> str:
    rest = len(group.victims)
    if (
        group.how in ("never-joined", "left", "failed-first", "not-visible")
        and group.ranks
        and rest
        and rest + len(group.ranks) == len(ranks)
    ):
        others = "the other one" if rest == 1 else f"the other {_NUMBERS.get(rest, str(rest))}"
        hosts = {standing.host for standing in ranks if standing.rank in group.ranks}
        one = len(hosts) == 1 and group.how != "not-visible"
        host = f" on {hosts.pop()}" if one and hosts != {""} else ""
        return (
            f"{ranks_say(group.ranks)}{host} {'holds' if len(group.ranks) == 1 else 'hold'} up"
            f" {others}"
        )
    return group.says


_NUMBERS = {
    2: "two",
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    11: "eleven",
    12: "twelve",
}
