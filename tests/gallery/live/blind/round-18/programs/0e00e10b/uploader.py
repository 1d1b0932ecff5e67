import os
import shutil
import threading


class SpoolUploader:
    """Copies finished files from the spool to the archive in the background."""

    def __init__(self, spool, archive, poll=0.5):
        self.spool, self.archive, self.poll = spool, archive, poll
        os.makedirs(spool, exist_ok=True)
        os.makedirs(archive, exist_ok=True)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._loop, name="uploader", daemon=True)
        self.thread.start()

    def _loop(self):
        while not self.stop.wait(self.poll):
            for name in sorted(os.listdir(self.spool)):
                if name.endswith(".pt"):
                    shutil.copy(os.path.join(self.spool, name), os.path.join(self.archive, "latest.pt"))
                    os.remove(os.path.join(self.spool, name))

    def close(self):
        self.stop.set()
        self.thread.join()
