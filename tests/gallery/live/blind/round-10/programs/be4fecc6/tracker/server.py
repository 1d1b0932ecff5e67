"""Receives metric lines over TCP and appends them to one file."""
import argparse
import os
import socketserver
import threading


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with self.server.lock:
                self.server.out.write(line.decode())
                self.server.out.flush()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with Server(("127.0.0.1", 0), Handler) as server:
        server.lock, server.out = threading.Lock(), open(args.out, "a")
        with open(args.port_file + ".new", "w") as f:
            f.write(str(server.server_address[1]))
        os.replace(args.port_file + ".new", args.port_file)
        server.serve_forever()


if __name__ == "__main__":
    main()
