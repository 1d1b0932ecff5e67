"""Tiny stand-alone clip decoder: reads one JSON request a line, answers with raw uint8 frames."""
import json
import random
import sys

FRAMES, SIDE = 12, 24


def decode(req):
    rng = random.Random(req["clip"])
    base = rng.randrange(0, 120)
    out = bytearray()
    for n in range(FRAMES):
        if n % 4 == 0 and req["pix_fmt"].startswith("yuvj"):
            sys.stderr.write(f"[swscaler @ 0x{id(out):x}] clip {req['clip']} frame {n}: "
                             f"deprecated pixel format used, make sure you did set range correctly\n")
        out += bytes((base + n * 5 + rng.randrange(16)) & 0xFF for _ in range(SIDE * SIDE))
    sys.stderr.flush()
    return bytes(out)


def main():
    stdout = sys.stdout.buffer
    for line in sys.stdin:
        payload = decode(json.loads(line))
        stdout.write(len(payload).to_bytes(4, "little") + payload)
        stdout.flush()


if __name__ == "__main__":
    main()
