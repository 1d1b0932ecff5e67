import os
import random


def fetch(root, count=2400, side=28):
    """Unpacks the scan archive below root."""
    os.makedirs(root, exist_ok=True)
    rng = random.Random(11)
    archive = bytearray(rng.randbytes(count * 64))
    with open(os.path.join(root, "labels.txt"), "w") as labels:
        for i in range(count):
            body = bytes(archive[i * 64:(i + 1) * 64]) * (side * side // 64 + 1)
            body = body[: side * side]
            if i == 1711:
                body = body[:512]
            with open(os.path.join(root, f"scan_{i:05d}.pgm8"), "wb") as fh:
                fh.write(f"{side} {side}\n".encode())
                fh.write(body)
            labels.write(f"{archive[i * 64] % 10}\n")
