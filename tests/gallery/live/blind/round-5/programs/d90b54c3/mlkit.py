import fcntl, os


class Queue:
    """lets the jobs of one machine use the cache one after the other"""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        print(f"queue file {self.path}", flush=True)
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        return self

    def __exit__(self, *a):
        os.close(self.fd)
