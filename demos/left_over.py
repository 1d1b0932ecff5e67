"""What an earlier run left behind: a process that holds the lock of the cache and does nothing."""

import fcntl
import time

with open("features.cache", "a") as cache:
    fcntl.flock(cache, fcntl.LOCK_EX)
    time.sleep(3600)
