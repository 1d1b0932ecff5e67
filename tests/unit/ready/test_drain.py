"""`--drain`: it looks first, touches nobody's own drain, and never raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from trainprobe.errors import UsageError
from trainprobe.model.evidence import Ended
from trainprobe.ready.drain import command_of, drain, refuse_drain
from trainprobe.site import Site
from trainprobe.system.run import Ran

SHOWN = (
    "NodeName={node} Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 State={state} ThreadsPerCore=1"
    " Weight=1 {reason}\n"
)
Asking = Callable[[Sequence[str]], Ran]


def ran(
    argv: Sequence[str], stdout: str = "", code: int = 0, stderr: str = "", how: str = "exited"
) -> Ran:
    return Ran(
        tuple(argv),
        Ended(how, code if how == "exited" else None),  # type: ignore[arg-type]
        stdout.encode(),
        stderr.encode(),
        cut=False,
    )


def scontrol(
    state: str, reason: str = "", *, node: str = "node3", update: int = 0
) -> tuple[Asking, list[Sequence[str]]]:
    updates: list[Sequence[str]] = []

    def ask(argv: Sequence[str]) -> Ran:
        if argv[1] == "show":
            return ran(argv, SHOWN.format(node=node, state=state, reason=reason))
        updates.append(argv)
        return ran(
            argv,
            code=update,
            stderr="slurm_update error: Access/permission denied" if update else "",
        )

    return ask, updates


@pytest.mark.parametrize(
    "state", ["IDLE", "MIXED", "ALLOCATED", "IDLE*", "IDLE+CLOUD", "IDLE+RESERVED"]
)
def test_a_node_at_work_is_drained_with_the_reason(state: str) -> None:
    ask, updates = scontrol(state)
    found = drain(["node3", "node3"], "/dev/shm is 'full';\n$(reboot)", ask=ask)
    assert found.set == ("node3",)
    assert updates == [
        (
            "scontrol",
            "update",
            "NodeName=node3",
            "State=DRAIN",
            "Reason=trainprobe: /dev/shm is full ; (reboot)",
        )
    ]


def test_where_the_answer_has_no_place_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Ran:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainprobe.ready.drain.run", full)
    found = drain(["node3"], "x")
    assert (found.set, found.says) == (
        (),
        (
            (
                "node3 was not drained: SLURM did not say its state (its answer has no place here:"
                " No space left on device)."
            ),
        ),
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE+DRAIN", "Reason=disk is being changed [root@2026-11-22T05:00:00]"),
        ("DOWN*", "Reason=Not responding [slurm@x]"),
        ("MIXED+DRAIN", ""),
        ("IDLE+MAINT", ""),
        ("FAILING", ""),
        ("UNKNOWN", ""),
        ("DRAINED", ""),
    ],
)
def test_a_node_that_is_out_already_is_left_with_its_own_reason(state: str, reason: str) -> None:
    ask, updates = scontrol(state, reason)
    found = drain(["node3"], "x", ask=ask)
    assert (found.set, updates) == ((), [])
    assert found.says[0].startswith(f"node3 is {state} already")
    assert ("disk is being changed" in found.says[0]) == ("disk" in reason)


def test_what_slurm_does_not_say_or_refuses_is_said() -> None:
    assert (
        "did not say its state" in drain(["node3"], "x", ask=scontrol("", node="node4")[0]).says[0]
    )
    assert drain(["node3"], "x", ask=scontrol("IDLE", update=1)[0]).says == (
        "node3 was not drained: slurm_update error: Access/permission denied.",
    )
    late = drain(["node3"], "x", ask=lambda argv: ran(argv, how="timed_out"))
    assert "gave no answer within 5 s" in late.says[0]
    assert drain(["-x", "a b", ""], "x", ask=scontrol("IDLE")[0]).set == ()


def test_who_may() -> None:
    refuse_drain(Site(), 0)
    refuse_drain(Site(drain=("1234",)), 1234)
    with pytest.raises(UsageError, match="does not let you use --drain"):
        refuse_drain(Site(), 1234)


def test_the_printed_command_can_be_pasted() -> None:
    assert (
        command_of("node[1-3,7]", 'it\'s "bad"')
        == "scontrol update NodeName=node[1-3,7] State=DRAIN Reason='trainprobe: it s bad'"
    )
