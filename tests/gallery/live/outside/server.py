"""A server on a free port: rate 0 takes requests and never answers, a higher one sends a file steadily, so many pieces a second."""

import socket
import sys
import threading
import time


def serve(connection):
    connection.recv(4096)
    if float(sys.argv[1]):
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        while True:
            connection.sendall(bytes(1 << 14))
            time.sleep(1 / float(sys.argv[1]))
    time.sleep(100_000)


listener = socket.create_server(("127.0.0.1", 0))
print(f"ready {listener.getsockname()[1]}", flush=True)
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
