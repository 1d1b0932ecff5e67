import logging
import signal

log = logging.getLogger("tts.preempt")


class PreemptionGuard:
    def __init__(self, signals=(signal.SIGUSR1, signal.SIGTERM)):
        self.requested = False
        for s in signals:
            signal.signal(s, self._on_signal)

    def _on_signal(self, signum, frame):
        log.warning("received %s, will checkpoint and leave after this step", signal.Signals(signum).name)
        self.requested = True
