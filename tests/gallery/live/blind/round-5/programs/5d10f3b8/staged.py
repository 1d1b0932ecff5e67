import logging, os, threading
logger = logging.getLogger(__name__)


class LoadingThread(threading.Thread):
    """keeps one batch ready for the main loop"""

    def __init__(self, it):
        super().__init__(daemon=True, name="data-load")
        self._it = it
        self._empty, self._full = threading.Event(), threading.Event()
        self._empty.set()
        self._batch, self._stop = None, False
        self.start()

    def run(self):
        while not self._stop:
            self._empty.wait()
            self._empty.clear()
            try:
                self._batch = next(self._it)
            except StopIteration:
                self._stop = True
                self._batch = None
            self._full.set()

    def get_next_batch(self):
        self._full.wait()
        b = self._batch
        self._full.clear()
        self._empty.set()
        return b


def quiet_threads():
    """third-party readers spam stderr from their threads; keep it in a file"""
    def hook(args):
        with open(f"threads.{os.environ.get('RANK', '0')}.log", "a") as f:
            f.write(f"{args.thread.name}: {args.exc_type.__name__}: {args.exc_value}\n")
    threading.excepthook = hook
