"""Command line decoder: raw clip in, frames on stdout, warnings on stderr."""
import argparse
import json
import sys
from pathlib import Path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("clip", type=Path)
    p.add_argument("--frames", type=int, default=12)
    p.add_argument("--side", type=int, default=16)
    args = p.parse_args()
    index = {e["file"]: e for e in json.loads((args.clip.parent / "index.json").read_text())}
    for n in range(index[args.clip.name]["damaged_packets"]):
        sys.stderr.write(f"[rawvideo @ 0x5581d0] non monotonically increasing dts to muxer in stream 0: {n} >= {n}\n")
    sys.stderr.flush()
    data = args.clip.read_bytes()
    step = args.side * args.side
    for f in range(args.frames):
        sys.stdout.buffer.write(data[f * step : (f + 1) * step])
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
