"""Keeps the paraphrase table in memory and answers one-word queries on a unix socket."""
import os
import socket
import sys

table = {f"w{i}": f"w{i ^ 1}" for i in range(64)}
srv = socket.socket(socket.AF_UNIX)
srv.bind(sys.argv[1] + ".new")
srv.listen(8)
srv.settimeout(3600)
os.rename(sys.argv[1] + ".new", sys.argv[1])
try:
    while True:
        conn, _ = srv.accept()
        with conn, conn.makefile("rw") as f:
            for word in f:
                f.write(table.get(word.strip(), "-") + "\n")
                f.flush()
except TimeoutError:
    os.unlink(sys.argv[1])
