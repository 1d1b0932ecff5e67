import logging
import os
import queue
import shutil
import subprocess
import sys
import threading

from transformers import TrainerCallback

log = logging.getLogger("archive")


class CheckpointArchive(TrainerCallback):
    """Packs every checkpoint in a helper process, one after the other, while training goes on."""

    def __init__(self, dest):
        self.dest = dest
        self.todo = queue.Queue()
        self.thread = None

    def on_train_begin(self, args, state, control, **kw):
        if state.is_world_process_zero:
            os.makedirs(self.dest, exist_ok=True)
            self.thread = threading.Thread(target=self._work, name="archive")
            self.thread.start()

    def on_save(self, args, state, control, **kw):
        if self.thread is not None:
            self.todo.put(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))

    def on_train_end(self, args, state, control, **kw):
        if self.thread is not None:
            self.todo.put(None)
            self.thread.join()

    def _work(self):
        while (path := self.todo.get()) is not None:
            staged = os.path.join(self.dest, os.path.basename(path))
            try:
                shutil.copytree(path, staged, dirs_exist_ok=True)
            except FileNotFoundError:
                continue
            out = subprocess.run(
                ["nice", sys.executable, "-m", "tarfile", "-c", staged + ".tar", staged],
                capture_output=True, text=True,
            )
            shutil.rmtree(staged, ignore_errors=True)
            log.info("archived %s rc=%d", os.path.basename(path), out.returncode)
            tars = sorted(f for f in os.listdir(self.dest) if f.endswith(".tar"))
            for old in tars[:-2]:
                os.unlink(os.path.join(self.dest, old))
