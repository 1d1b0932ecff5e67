import socket
import sys
import threading
import time


def relay(client, upstream):
    data = client.recv(65536)
    host, port = upstream.split(":")
    while True:
        s = socket.socket()
        try:
            s.connect((host, int(port)))
            break
        except OSError as e:
            s.close()
            print(f"upstream {upstream}: {e}", flush=True)
            time.sleep(20)
    s.sendall(data)
    while chunk := s.recv(65536):
        client.sendall(chunk)


srv = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    c, _ = srv.accept()
    threading.Thread(target=relay, args=(c, sys.argv[2]), daemon=True).start()
