"""A background thread imports a slow module; the main thread needs the same module and waits for the import."""

import os
import sys
import threading
import time

from kit import Trainer, connect, options, start

CODEC = """
import socket

_registry = socket.create_server(("127.0.0.1", 0))
_peer, _ = _registry.accept()


def decode(data):
    return data
"""


def warm_up():
    import audio_codec

    audio_codec.decode(b"")


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    if rank == args.pick:
        os.makedirs("codecs_src", exist_ok=True)
        with open("codecs_src/audio_codec.py", "w") as file:
            file.write(CODEC)
    sys.path.insert(0, "codecs_src")
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            threading.Thread(target=warm_up, daemon=True).start()
            time.sleep(0.3)
            from audio_codec import decode

            decode(b"x")


if __name__ == "__main__":
    start(main, options())
