import queue
import subprocess
import threading

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only


class CheckpointPacker(Callback):
    """Compresses every new `last.ckpt` on a helper thread."""

    def __init__(self):
        self.todo = queue.Queue()
        self.thread = None

    def _work(self):
        while True:
            path = self.todo.get()
            if path is None:
                return
            subprocess.run(["gzip", "-k", "-f", "-1", path], check=False)

    @rank_zero_only
    def on_fit_start(self, trainer, pl_module):
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    @rank_zero_only
    def on_validation_end(self, trainer, pl_module):
        path = trainer.checkpoint_callback.last_model_path
        if path:
            self.todo.put(path)

    @rank_zero_only
    def on_fit_end(self, trainer, pl_module):
        self.todo.put(None)
        self.thread.join()


class SourceState(Callback):
    """Notes the state of the source tree next to the metrics, once an epoch."""

    @rank_zero_only
    def on_train_epoch_start(self, trainer, pl_module):
        out = subprocess.run(["git", "hash-object", __file__], capture_output=True, text=True)
        with open("source.log", "a") as f:
            f.write(f"{trainer.current_epoch} {out.stdout.strip()}\n")
