import logging
import os
import queue
import shutil
import threading

from transformers import TrainerCallback

logger = logging.getLogger(__name__)


class ArchiveCallback(TrainerCallback):
    """Copies every checkpoint to the archive in the background; at most one is under way when the next is saved."""

    def __init__(self, archive_dir):
        self.archive_dir = archive_dir
        self.jobs = queue.Queue()
        self.thread = None

    def _run(self):
        while True:
            src = self.jobs.get()
            dst = os.path.join(self.archive_dir, os.path.basename(src))
            os.makedirs(dst, exist_ok=True)
            for name in sorted(os.listdir(src)):
                shutil.copyfile(os.path.join(src, name), os.path.join(dst, name))
            logger.warning("archived %s", dst)
            self.jobs.task_done()

    def on_save(self, args, state, control, **kwargs):
        if not state.is_world_process_zero:
            return
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="archive", daemon=True)
            self.thread.start()
        self.jobs.join()
        self.jobs.put(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
