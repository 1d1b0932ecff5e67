import argparse
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--root", default="shards")
    args = p.parse_args()
    ThreadingHTTPServer(("127.0.0.1", args.port), partial(Handler, directory=args.root)).serve_forever()
