import argparse
import socket
import time

from filelock import FileLock


def reachable(address):
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="source")
    parser.add_argument("--to")
    args = parser.parse_args()
    with FileLock(f"{args.to}/.lock"):
        print("copying", args.source, "->", args.to, flush=True)
        while not reachable(args.source):
            print("mirror not reachable, trying again in 20 s", flush=True)
            time.sleep(20)


if __name__ == "__main__":
    main()
