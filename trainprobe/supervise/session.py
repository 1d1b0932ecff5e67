"""One `trainprobe run` from its first process to its last word."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trainprobe.redact import Redactor
from trainprobe.supervise.heartbeats import Heartbeats
from trainprobe.supervise.journal import RunFolder
from trainprobe.supervise.notification import Notifier, notification, summary_of
from trainprobe.supervise.preparation import HEARTBEAT, RUN_MARK, prepared
from trainprobe.supervise.voice import Voice
from trainprobe.supervise.watched import Watched
from trainprobe.system.foreground import Foreground, stop_ourselves
from trainprobe.system.signal_relay import SignalRelay

if TYPE_CHECKING:
    from typing_extensions import Self

    from trainprobe.case import Case
    from trainprobe.model.request import RunRequest
    from trainprobe.supervise.looks import Look

_WORDS = {
    "hung": "The job has stood still for {seconds:.0f} s:",
    "unseen": "The job has stood still for {seconds:.0f} s, and why could not be seen:",
    "slow": "The job is slow:",
    "crashed": "The job has failed:",
}


class Session:
    """The command with all that stands around it. It starts when the session is entered.

    Raises UsageError or CannotStart there where it cannot.
    """

    def __init__(self, request: RunRequest, tell_pid: Callable[[int], None]) -> None:
        self._request, self._tell_pid = request, tell_pid
        self._redactor = Redactor(os.environ)
        self._watched: Watched | None = None
        self._argv = tuple(str(word) for word in self._redactor.data(list(request.argv))[0])
        self._host = socket.gethostname().partition(".")[0]

    def __enter__(self) -> Self:
        from trainprobe.supervise.after_the_end import output_files

        request = self._request
        self._outputs = output_files()
        self._folder = RunFolder.make(request.case, request.argv, os.environ)
        self._relay = SignalRelay()
        self._voice = Voice(self._redactor)
        self._notifier = Notifier(request.notify, self._voice.say)
        self._heartbeats = Heartbeats()
        added = prepared(os.environ, self._folder.path, request.argv) if request.prepare else {}
        said = {HEARTBEAT: self._heartbeats.folder} if self._heartbeats.folder else {}
        self._folder.note("prepared", variables=sorted(added))
        try:
            self._command = Foreground(
                request.argv, {**os.environ, **added, **said}, mark=RUN_MARK, closed=request.closed
            )
        except BaseException:
            self._relay.close()
            self._heartbeats.close()
            self._folder.close()
            raise
        self._tell_pid(self._command.pid)
        self._relay.start_over_ignored()
        self._command.let_go_of_streams()
        return self

    def watch(self) -> Watched:
        """Return when the command has ended."""
        try:
            self._supervise()
        except Exception as error:  # noqa: BLE001 - a fault of ours must not touch the job
            self._folder.note("fault", says=f"{type(error).__name__}: {error}")
            self._voice.say(
                f"A fault of trainprobe itself ({type(error).__name__}: {error}): the job goes on"
                " and is not watched any more."
            )
            self._only_pass_through()
        watched = self._watched if self._watched is not None else Watched()
        watched.status = self._command.ended or 0
        return watched

    def _supervise(self) -> None:
        # after the start of the command, which waits for nothing of ours
        from trainprobe.supervise.supervision import Listeners, Supervision

        supervision = Supervision(
            self._request,
            self._command,
            self._relay,
            self._folder,
            Listeners(self._voice.say, self._death, self._alarm, self._goes_on),
            self._heartbeats,
        )
        self._watched = supervision.seen
        supervision.watch()

    def _only_pass_through(self) -> None:
        while self._command.ended is None:
            self._command.wait(1.0, self._relay.fileno())
            for number, alone in self._relay.arrived():
                if alone:
                    self._command.send(number)
                if number == signal.SIGTSTP:
                    stop_ourselves()

    @property
    def failed(self) -> bool:
        """Did it end badly by itself, neither by a signal that somebody sent us nor by policy?"""
        seen = self._watched
        return seen is not None and bool(seen.status) and not seen.asked_to_end and not seen.policy

    def case_of_the_end(self) -> Case | None:
        """Record what is left of a job that failed; None where that is nothing."""
        from trainprobe.case import Case
        from trainprobe.supervise.after_the_end import record_end
        from trainprobe.targets.programs import launcher_kind

        if self._watched is None:
            return None
        # one that is no launcher and never showed a rank was no training
        if self._watched.job is None and not launcher_kind(self._request.argv):
            return None
        case = Case.create(self._folder.next_look(), "run", ("trainprobe", "run"))
        self._folder.worth_keeping = True
        if record_end(
            case, self._watched.job, self._watched.endings, self._outputs, self._folder.path
        ):
            return case
        case.close()
        return None

    def tell_of_the_end(self, report: Mapping[str, Any], text: str) -> None:
        """Show the report on a job that failed, and tell whoever asked."""
        self._tell("crashed", report, text, 0.0)

    def _death(self, sentence: str) -> None:
        """Say it at once, but not into the log from which the report is made: the job is over in a
        moment, and the report says the same.
        """
        if not self._outputs:
            self._voice.say(sentence)

    def _alarm(self, event: str, look: Look, stood_s: float) -> None:
        self._tell(event, look.report, look.text, stood_s)

    def _goes_on(self, stood_s: float) -> None:
        says = f"the job goes on, after it had stood still for {stood_s:.0f} s."
        self._voice.say(says[0].upper() + says[1:])
        data = self._data("goes-on", {"says": says}, stood_s)
        self._notifier.send("goes-on", data, summary_of(data))

    def _tell(self, event: str, report: Mapping[str, Any], text: str, stood_s: float) -> None:
        self._folder.worth_keeping = True
        data = self._data(event, report, stood_s)
        self._voice.say(_WORDS[event].format(seconds=stood_s))
        self._voice.show(summary_of(data) if self._request.quiet or not text else text)
        self._notifier.send(event, data, summary_of(data))

    def _data(self, event: str, report: Mapping[str, Any], stood_s: float) -> dict[str, Any]:
        return notification(
            event,
            report,
            host=self._host,
            argv=self._argv,
            folder=self._folder.path,
            at=round(time.time(), 3),
            stood_still_s=round(stood_s, 1),
            policy=self._request.on_hang if event == "hung" else "",
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import resource

        own, looks = (
            resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        self._folder.note(
            "over",
            status=self._command.ended,
            steps=self._watched.steps if self._watched is not None else {},
            job_cpu_s=round(self._command.cpu_s, 2),
            own_cpu_s=round(own, 3),
            looks_cpu_s=round(looks - self._command.cpu_s, 2),
        )
        self._notifier.close()
        self._voice.close()
        self._relay.close()
        self._heartbeats.close()
        self._folder.close()
        sys.stderr.flush()
