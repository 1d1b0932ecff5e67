import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path


class Publisher:
    """Packs and copies finished checkpoints to the export folder in the background."""

    def __init__(self, root, keep=2):
        self.root, self.keep = Path(root), keep
        (self.root / "export").mkdir(parents=True, exist_ok=True)
        self.jobs = queue.Queue()
        threading.Thread(target=self._loop, daemon=True, name="publisher").start()

    def submit(self, path):
        self.jobs.put(Path(path))

    def _loop(self):
        while True:
            path = self.jobs.get()
            archive = self.root / "export" / (path.name + ".tar.gz")
            subprocess.run(["nice", "-n", "10", "tar", "-czf", str(archive), "-C", str(path.parent), path.name], check=True)
            for old in sorted((self.root / "export").glob("*.tar.gz"))[: -self.keep]:
                old.unlink()
            print(f"published {archive.name} ({archive.stat().st_size // 1024} KiB)", file=sys.stderr, flush=True)
            shutil.rmtree(path, ignore_errors=True)
            self.jobs.task_done()
