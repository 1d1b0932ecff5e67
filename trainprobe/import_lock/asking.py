"""Asks for a lock file until it is had, in slices, so that a deadline can pass in between."""

from __future__ import annotations

import threading
import time

from trainprobe.import_lock import lock_file


class Asking:
    """Asks for one of some lock files. For a single one a thread sleeps in flock, so that the kernel lists this process as a waiter, first come first served."""

    def __init__(self, paths: list[str]) -> None:
        self.paths, self.files = paths, [lock_file.opened(path) for path in paths]
        self.thread: threading.Thread | None = None
        self.mutex, self.answered, self.left = threading.Lock(), threading.Event(), False
        self.error: OSError | None = None

    def taken(self) -> int | None:
        """Return the file that is locked now, which is the caller's from here on; None where none is to be had yet. Raises OSError."""
        if self.thread is None:
            place = next((place for place, file in enumerate(self.files) if lock_file.lock(file, self.paths[place], wait=False)), None)
        elif self.answered.is_set():
            self.thread.join()  # so that no thread is left while the import may fork
            self.thread, place = None, 0
            if self.error is not None:
                raise self.error
        else:
            return None
        if place is None:
            return None
        if lock_file.is_at(self.files[place], self.paths[place]):
            file = self.files.pop(place)
            lock_file.sign(file)
            return file
        # Somebody deleted the file meanwhile: a lock on what has no name keeps nobody out.
        lock_file.close(self.files[place])
        self.files[place] = lock_file.opened(self.paths[place])
        return None

    def holder(self) -> dict[str, str]:
        return lock_file.holder(self.files[0]) if self.files else {}

    def wait(self, for_s: float) -> None:
        """Wait until the lock may be there, at most so long in seconds."""
        if self.thread is None and len(self.files) == 1:
            self.answered.clear()
            self.thread = threading.Thread(target=self._sleep_in_flock, args=(self.files[0],), name="trainprobe-import-lock", daemon=True)
            try:
                self.thread.start()
            except RuntimeError:  # no thread is to be had: ask again and again
                self.thread = None
        if self.thread is None:
            time.sleep(for_s)
        else:
            self.answered.wait(for_s)

    def leave(self) -> None:
        """Give back what was opened and not taken."""
        with self.mutex:
            self.left = True
            if self.thread is not None and not self.answered.is_set():
                return  # the thread closes its file when flock returns
        for file in self.files:
            lock_file.close(file)
        self.files = []

    def _sleep_in_flock(self, file: int) -> None:
        try:
            lock_file.lock(file, self.paths[0], wait=True)
        except OSError as error:
            self.error = error
        with self.mutex:
            if self.left:
                lock_file.close(file)
            self.answered.set()
