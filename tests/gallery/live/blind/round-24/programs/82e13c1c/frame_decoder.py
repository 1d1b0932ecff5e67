"""Command line decoder: one clip name per line on stdin, raw RGB frames on stdout."""
import hashlib
import sys
import time

FRAMES, SIDE = 4, 8


def open_clip(name):
    number = int(name.split("_")[1].split(".")[0])
    return number, name.endswith(".mkv")


def emit_frames(number, out):
    for frame in range(FRAMES):
        seed = hashlib.sha256(f"{number}/{frame}".encode()).digest()
        raw = (seed * 6)[: SIDE * SIDE * 3]
        out.write(raw)
    out.flush()


def main():
    out = sys.stdout.buffer
    for line in sys.stdin:
        number, matroska = open_clip(line.strip())
        if matroska:
            for pts in range(0, 40, 20):
                sys.stderr.write(f"[hevc @ 0x55d0c3{number:06x}] Could not find ref with POC {pts}; "
                                 f"[matroska,webm] Unknown-sized element inside parent with finite size, "
                                 f"timestamp {number * 40 + pts}\n")
            sys.stderr.flush()
        time.sleep(0.01)
        emit_frames(number, out)


if __name__ == "__main__":
    main()
