import json
import os
import queue
import socket
import threading
import time


class Run:
    """Sends metrics from a thread of its own, so that training does not wait for the network."""

    def __init__(self, port_file, rank):
        self.rank = rank
        self.items = queue.Queue()
        self.closed = threading.Event()
        while not os.path.exists(port_file):
            time.sleep(0.2)
        self.sock = socket.create_connection(("127.0.0.1", int(open(port_file).read())))
        self.thread = threading.Thread(target=self._send, name="tracker-send")
        self.thread.start()

    def log(self, step, **metrics):
        self.items.put({"rank": self.rank, "step": step, "time": time.time(), **metrics})

    def _send(self):
        while not (self.closed.is_set() and self.items.empty()):
            try:
                item = self.items.get(timeout=1.0)
            except queue.Empty:
                continue
            self.sock.sendall((json.dumps(item) + "\n").encode())
        self.sock.close()

    def finish(self):
        self.closed.set()
        self.thread.join()
