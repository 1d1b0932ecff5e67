import os
import socket

import torch.distributed as dist


class TrainingController:
    """Listens for commands of the GUI."""

    def __init__(self):
        self.sock = None
        if dist.get_rank() == 0:
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sock.bind(("127.0.0.1", int(os.environ["CONTROL_PORT"])))
            self.sock.setblocking(False)

    def on_batch_end(self, trainer):
        if self.sock is not None:
            try:
                if self.sock.recv(64) == b"stop":
                    print("stop requested", flush=True)
                    trainer.should_stop = True
            except BlockingIOError:
                pass
        dist.barrier()
