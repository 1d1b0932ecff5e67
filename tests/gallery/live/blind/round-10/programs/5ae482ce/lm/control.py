import json
import socket
import threading
import time


class ControlPort:
    """Local endpoint that answers with the current state of the run."""

    def __init__(self):
        self.state = {"step": 0, "loss": None}
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(4)
        threading.Thread(target=self._serve, name="control", daemon=True).start()

    @property
    def port(self):
        return self.sock.getsockname()[1]

    def _serve(self):
        while True:
            conn, _ = self.sock.accept()
            with conn:
                conn.sendall(json.dumps(self.state).encode() + b"\n")


class Heartbeat:
    def __init__(self, path, every=15.0):
        self.path, self.every = path, every
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self):
        while True:
            with open(self.path, "w") as f:
                f.write(f"{time.time():.0f}\n")
            time.sleep(self.every)
