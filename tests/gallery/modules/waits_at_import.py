"""A module whose import asks a licence server that never answers."""

import socket

LISTENER = socket.socket()
LISTENER.bind(("127.0.0.1", 0))
LISTENER.listen(1)


def fetch_licence(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address) as connection:
        connection.sendall(b"licence?\n")
        return connection.recv(64)


LICENCE = fetch_licence(LISTENER.getsockname())
