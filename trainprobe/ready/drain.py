"""Drains nodes, only with `--drain` and only for users whom the site allows.

A node that is drained, down, failing or under maintenance already is left as it is, with its
reason. Nothing is ever undrained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainprobe.errors import UsageError
from trainprobe.model.evidence import Ended
from trainprobe.redact import clean
from trainprobe.site import Site
from trainprobe.system.run import Ran, run

ASK_S = 5.0
REASON = 160
LEAVE = (
    *("DRAIN", "DOWN", "FAIL", "MAINT", "POWERED_DOWN", "POWERING_DOWN"),
    *("REBOOT", "UNKNOWN", "FUTURE"),
)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
Asking = Callable[[Sequence[str]], Ran]


@dataclass(frozen=True)
class Drained:
    """`set` are the nodes that we drained; `says` has one sentence for each node or failure."""

    set: tuple[str, ...]
    says: tuple[str, ...]


def refuse_drain(site: Site, uid: int) -> None:
    """Raise UsageError where this user may not use `--drain` here."""
    if not site.may_drain(uid):
        raise UsageError(
            "This site does not let you use --drain.",
            "Give the printed command to an"
            f" administrator{f' ({site.path})' if site.path else ''}.",
        )


def drain(
    nodes: Sequence[str],
    reason: str,
    environment: Mapping[str, str] | None = None,
    ask: Asking | None = None,
) -> Drained:
    """Drain each of `nodes` that is not drained or down already. Never raises; each call of
    scontrol has a deadline.
    """
    asked = ask or (lambda argv: _run(argv, environment))
    done: list[str] = []
    says: list[str] = []
    for node in dict.fromkeys(nodes):
        if not _NODE.fullmatch(node):
            says.append(f"{clean(node)[:60]!r} is no name of a node.")
            continue
        shown = asked(("scontrol", "show", "node", node, "--oneliner"))
        state, stands = _state(shown.stdout.decode("utf-8", "replace"), node)
        if not state:
            says.append(f"{node} was not drained: SLURM did not say its state ({_why(shown)}).")
        elif any(word.startswith(LEAVE) for word in re.split(r"[+*~#!%$@^-]", state)):
            says.append(
                f"{node} is {state} already{f' ({stands})' if stands else ''} and was left so."
            )
        else:
            change = (f"NodeName={node}", "State=DRAIN", f"Reason={_reason(reason)}")
            ran = asked(("scontrol", "update", *change))
            if ran.ended.how == "exited" and ran.ended.code == 0:
                done.append(node)
                says.append(f"{node} is set to drain: {_reason(reason)}.")
            else:
                says.append(f"{node} was not drained: {_why(ran)}.")
    return Drained(tuple(done), tuple(says))


def _run(argv: Sequence[str], environment: Mapping[str, str] | None) -> Ran:
    try:
        return run(argv, timeout_s=ASK_S, env=environment, output_cap_bytes=2**20, kill_s=0.5)
    except OSError as error:  # no place for its answer on any disk
        return Ran(
            tuple(argv),
            Ended("not_started", reason=f"its answer has no place here: {error.strerror or error}"),
            b"",
            b"",
            cut=False,
        )


def command_of(nodes: str, reason: str) -> str:
    """Return what an administrator types, for nodes in the short form."""
    return f"scontrol update NodeName={nodes} State=DRAIN Reason='{_reason(reason)}'"


def _reason(text: str) -> str:
    """The reason without characters, such as quotes, that would end it in the printed command."""
    text = re.sub(r"[^\w .,:;()/%+=@-]", " ", clean(text), flags=re.ASCII)
    return f"trainprobe: {' '.join(text.split())}"[:REASON].rstrip()


def _state(shown: str, node: str) -> tuple[str, str]:
    """The state and the reason of a node in a line of `scontrol show node --oneliner`."""
    for line in shown.splitlines():
        if re.match(rf"NodeName={re.escape(node)}(?:\s|$)", line):
            state = re.search(r"(?:^|\s)State=([A-Z_a-z+*~#!%$@^-]{1,200})", line)
            reason = re.search(
                r"(?:^|\s)Reason=(.{0,200}?)(?:\s\[[^\]]*\])?(?:\s[A-Z]\w+=|\s*$)", line
            )
            return (state.group(1).upper() if state else ""), (
                clean(reason.group(1)) if reason else ""
            )
    return "", ""


def _why(ran: Ran) -> str:
    last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    if ran.ended.how == "timed_out":
        return f"scontrol gave no answer within {ASK_S:g} s"
    if last:
        return clean(last[0])[:200].rstrip(".")
    return (ran.ended.reason or f"scontrol ended with {ran.ended.code}").rstrip(".")
