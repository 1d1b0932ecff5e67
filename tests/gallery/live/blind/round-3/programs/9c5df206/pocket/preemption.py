import signal


class StopSignal:
    def __init__(self, signals=(signal.SIGUSR1, signal.SIGTERM)):
        self.received = False
        for s in signals:
            signal.signal(s, self._handle)

    def _handle(self, signum, frame):
        print(f"received {signal.Signals(signum).name}, will checkpoint after this step", flush=True)
        self.received = True
