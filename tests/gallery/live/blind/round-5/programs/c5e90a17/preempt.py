import signal, sys


class Notice:
    """Remembers that the scheduler asked us to make room."""

    def __init__(self, sig=signal.SIGUSR1):
        self.wanted = False
        signal.signal(sig, self._on)

    def _on(self, signum, frame):
        sys.stderr.write(f"[preempt] got {signal.Signals(signum).name}, saving after this batch\n")
        self.wanted = True
