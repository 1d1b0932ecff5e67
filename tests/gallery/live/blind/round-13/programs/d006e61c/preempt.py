import signal


class StopFlag:
    def __init__(self, signals=(signal.SIGTERM, signal.SIGUSR1)):
        self.requested = False
        for s in signals:
            signal.signal(s, self._handle)

    def _handle(self, signum, frame):
        self.requested = True
