"""Small software decoder: one clip id per line on stdin, raw uint8 frames on stdout."""
import random
import sys

FRAMES, H, W = 8, 24, 24


def decode(clip):
    rng = random.Random(clip)
    damaged = clip % 2 == 1 and rng.random() < 0.8
    frames = bytearray()
    for n in range(FRAMES):
        frames += rng.randbytes(H * W)
        if damaged:
            sys.stderr.write(f"[h264 @ {id(rng):#x}] non-existing PPS {n} referenced\n")
            sys.stderr.write(f"[h264 @ {id(rng):#x}] decode_slice_header error, frame {n} of clip {clip:06d}\n")
            sys.stderr.flush()
    return bytes(frames)


def main():
    for line in sys.stdin:
        line = line.strip()
        if not line:
            break
        sys.stdout.buffer.write(decode(int(line)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
