"""A cancelled job: what its launchers raise of the signal is no failure before the cancellation."""

from __future__ import annotations

import pytest

from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.log_failures import LogFailure
from trainprobe.facts.outside_ends import cancelled_from_outside

LINE = LogEvent(("E1",), event="step-cancelled", place=30, echo=True)


def raised(kind: str) -> LogFailure:
    return LogFailure(("E1",), what="exception", kind=kind, echo=True, echo_of="launcher", place=20)


@pytest.mark.parametrize(
    ("kind", "from_outside"),
    [
        ("SignalException: Process 0 got signal: 0", True),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 0", True),
        ("ChildFailedError: train.py FAILED", False),
    ],
)
def test_a_launcher_that_was_sent_a_signal_tells_of_no_earlier_failure(
    kind: str, from_outside: bool
) -> None:
    assert (cancelled_from_outside([LINE], [raised(kind)], []) is LINE) is from_outside
