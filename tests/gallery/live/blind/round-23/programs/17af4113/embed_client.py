import os
import socket
import time

import torch

DIM = 16


class EmbeddingClient:
    """Looks rows up at the home replica, falls over to the next one."""

    def __init__(self, rank, timeout=1.8):
        hosts = [h.rsplit(":", 1) for h in os.environ["EMBED_REPLICAS"].split(",")]
        shift = rank % len(hosts)
        self.replicas = [(h, int(p)) for h, p in hosts[shift:] + hosts[:shift]]
        self.timeout = timeout

    def _ask(self, address, ids):
        with socket.create_connection(address, timeout=self.timeout) as sock:
            sock.sendall((" ".join(map(str, ids)) + "\n").encode())
            want, parts = len(ids) * DIM * 4, []
            while want:
                part = sock.recv(min(want, 65536))
                if not part:
                    raise ConnectionError("short answer")
                parts.append(part)
                want -= len(part)
        return bytearray(b"".join(parts))

    def lookup(self, ids):
        error = None
        for address in self.replicas:
            for _ in range(10):
                try:
                    return torch.frombuffer(self._ask(address, ids), dtype=torch.float32).view(len(ids), DIM)
                except ConnectionRefusedError as e:
                    error = e
                    time.sleep(0.5)
                except OSError as e:
                    error = e
                    break
        raise error
