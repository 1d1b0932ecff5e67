"""The agents of one job that have not started a rank yet: several on one host, each for a node.

Ranks of one job find each other by their address. Agents that still wait for each other have no
rank, and what they were told about the rendezvous may be the very thing that differs.
"""

from __future__ import annotations

from trainprobe.targets.process_table import ProcessRow, Table, in_order
from trainprobe.targets.programs import launcher_kind, option
from trainprobe.targets.rank_search import Team, below_launcher

AGENTS = frozenset({"torchrun", "accelerate"})
ENDPOINT = ("rdzv-endpoint", "master-addr", "main-process-ip")
PORT = ("master-port", "main-process-port")
# Where and as whom an agent meets the others: it is each agent's own, or should be alike.
OF_THE_MEETING = frozenset(
    (
        *ENDPOINT,
        *PORT,
        *("rdzv-id", "rdzv-conf", "node-rank", "machine-rank", "local-addr", "log-dir"),
    )
)


def fellow_agents(table: Table, team: Team) -> tuple[ProcessRow, ...]:
    """Return the other agents here that run the same command as the root of a team without ranks,
    but for the rendezvous, with its end point or in its session.
    """
    root = team.root
    if root is None or team.ranks or launcher_kind(root.argv) not in AGENTS:
        return ()
    mine = _command(root.argv)
    found = [
        each
        for each in table.by_pid.values()
        if each is not root
        and not each.ended
        and (each.uid, each.cwd) == (root.uid, root.cwd)
        and launcher_kind(each.argv) in AGENTS
        and _command(each.argv) == mine
        and (each.session == root.session or _end_point(each.argv) == _end_point(root.argv) != ())
        and not any(launcher_kind(above.argv) in AGENTS for above in table.ancestors(each))
        and not below_launcher(table, each)
    ]
    return tuple(sorted(found, key=in_order))


def _command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The words without the options of the meeting and their values."""
    words: list[str] = []
    value_follows = False
    for word in argv:
        name, equals, _ = word.partition("=")
        of_the_meeting = (
            word.startswith("-") and name.lstrip("-").replace("_", "-") in OF_THE_MEETING
        )
        if not (of_the_meeting or value_follows):
            words.append(word)
        value_follows = of_the_meeting and not equals
    return tuple(words)


def _end_point(argv: tuple[str, ...]) -> tuple[str, ...]:
    found = option(argv, *ENDPOINT), option(argv, *PORT)
    return found if found[0] else ()
