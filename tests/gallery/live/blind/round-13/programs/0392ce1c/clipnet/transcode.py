"""Stream a clip as raw rgb24 frames on stdout (stand-alone demuxer used by VideoReader)."""
import argparse
import sys

import numpy as np


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-i", dest="src", required=True)
    p.add_argument("-s", dest="size", default="32x32")
    args = p.parse_args()
    w, h = (int(v) for v in args.size.split("x"))
    meta = np.load(args.src)
    frames, dts = meta["frames"], meta["dts"]
    out, log = sys.stdout.buffer, sys.stderr
    last = -1
    for i in range(len(frames)):
        if dts[i] <= last:
            log.write(
                f"[image2pipe @ {id(meta):#x}] Application provided invalid, non monotonically "
                f"increasing dts to muxer in stream 0: {last} >= {dts[i]}\n"
            )
            log.flush()
        last = max(last, int(dts[i]))
        out.write(frames[i].reshape(h, w, 3).tobytes())
        out.flush()


if __name__ == "__main__":
    main()
