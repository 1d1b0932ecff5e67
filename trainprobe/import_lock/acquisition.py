"""Asks for a lock file until it is had, while a deadline can pass."""

from __future__ import annotations

import threading
import time

from trainprobe.import_lock import lock_file

ASKS_AGAIN_S = 0.1  # where no thread can sleep in flock


class Asking:
    """Asks for one of some lock files. For a single one a thread sleeps in flock, so that the
    kernel lists this process as a waiter, first come first served.
    """

    def __init__(self, paths: list[str]) -> None:
        self.paths, self.files = paths, [lock_file.opened(path) for path in paths]
        self.thread: threading.Thread | None = None
        self.mutex, self.news, self.answered, self.left = (
            threading.Lock(),
            threading.Event(),
            False,
            False,
        )
        self.error: OSError | None = None

    def taken(self) -> int | None:
        """Return the file that is locked now, which is the caller's from here on; None where
        none is to be had yet. Raises OSError.
        """
        if self.thread is None:
            place = next(
                (
                    place
                    for place, file in enumerate(self.files)
                    if lock_file.lock(file, self.paths[place], wait=False)
                ),
                None,
            )
        elif self.answered:
            self.thread.join()  # so that no thread is left while the import may fork
            self.thread, self.answered, place = None, False, 0
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
        lock_filename = self.paths[0]  # the name by which lookers at stacks ask for it
        if self.thread is None and len(self.files) == 1:
            self.thread = threading.Thread(
                target=self._sleep_in_flock,
                args=(self.files[0], lock_filename),
                name="trainprobe-import-lock",
                daemon=True,
            )
            try:
                self.thread.start()
            except RuntimeError:  # no thread is to be had: ask again and again
                self.thread = None
        if self.thread is None:
            time.sleep(min(for_s, ASKS_AGAIN_S))
        else:
            self.news.wait(for_s)
        self.news.clear()

    def leave(self) -> None:
        """Give back what was opened and not taken."""
        with self.mutex:
            self.left = True
            if self.thread is not None and not self.answered:
                return  # the thread closes its file when flock returns
        for file in self.files:
            lock_file.close(file)
        self.files = []

    def _sleep_in_flock(self, file: int, path: str) -> None:
        try:
            lock_file.lock(file, path, wait=True)
        except OSError as error:
            self.error = error
        with self.mutex:
            if self.left:
                lock_file.close(file)
            self.answered = True
        self.news.set()
