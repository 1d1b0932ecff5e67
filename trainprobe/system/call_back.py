"""Starts a program on another node by a starter that carries neither stdin nor stdout, as PBS'
pbsdsh, and lets it call back: the connection stands for both.

    python call_back.py NODE STARTER... --call PYTHON ARGUMENT...

Stand-alone, since it runs in a process of its own for each node; standard library only. One program
may call back, and has to know a word that was made for it.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess
import sys

CALL_S = 120.0  # whoever started us ends us earlier
CHUNK = 1 << 16
END_S = 2.0
# What runs on the node: tries the addresses in turn, and becomes the program.
CALLER = """
import os, socket, sys
addresses, port, word = sys.argv[1:4]
for address in addresses.split(","):
    try:
        line = socket.create_connection((address, int(port)), 5)
        break
    except OSError as error:
        why = error
else:
    sys.exit("no way back to %s: %s" % (addresses, why))
line.settimeout(None)
line.sendall(word.encode())
os.dup2(line.fileno(), 0); os.dup2(line.fileno(), 1)
os.execv(sys.argv[4], sys.argv[4:])
"""


def main(argv: list[str]) -> int:
    """Return the exit code of the starter where nothing called back, else 0."""
    node, words = argv[0], argv[1:]
    starter, program = words[: words.index("--call")], words[words.index("--call") + 1 :]
    word = secrets.token_hex(16)
    listener = socket.create_server(("", 0))
    port = str(listener.getsockname()[1])
    call = (program[0], "-c", CALLER, ",".join(_addresses(node)), port, word)
    # What the starter prints is its own: the answer comes over the connection.
    child = subprocess.Popen(
        [*starter, *call, *program], stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno()
    )
    line = _called(listener, child, word)
    if line is None:
        code = child.wait() or 1
        name = os.path.basename(starter[0])
        sys.stderr.write(f"{name} ended with code {code}; the job's own output may say why\n")
        return code
    _pass_on(line)
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.terminate()
    return 0


def _addresses(node: str) -> list[str]:
    """Those of this host by which the node may reach it: first the one that leads there."""
    found = [socket.gethostname()]
    try:
        for family, kind, *_, address in socket.getaddrinfo(node, 9, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(address)  # of datagrams: nothing is sent
                found.insert(0, probe.getsockname()[0])
    except OSError:
        pass
    return list(dict.fromkeys(found))


def _called(
    listener: socket.socket, child: subprocess.Popen[bytes], word: str
) -> socket.socket | None:
    """The connection of our program, None where the starter has ended without one."""
    for _ in range(int(CALL_S / 0.1)):
        if select.select([listener], [], [], 0.1)[0]:
            line, _ = listener.accept()
            line.settimeout(5.0)
            try:
                told = line.recv(len(word), socket.MSG_WAITALL)
            except OSError:
                told = b""
            line.settimeout(None)
            if secrets.compare_digest(told, word.encode()):
                listener.close()
                return line
            line.close()
        elif child.poll() is not None:
            return None
    child.terminate()
    return None


def _pass_on(line: socket.socket) -> None:
    """Carry stdin there and the answer to stdout, until the program has ended."""
    ends: list[int | socket.socket] = [0, line]
    while True:
        for end in select.select(ends, [], [])[0]:
            if end is line:
                answer = line.recv(CHUNK)
                if not answer:
                    return
                os.write(1, answer)
                continue
            asked = os.read(0, CHUNK)
            if asked:
                line.sendall(asked)
            else:  # nobody waits any more
                ends.remove(0)
                line.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
