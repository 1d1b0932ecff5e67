import pdb
import socket


class RemotePdb(pdb.Pdb):
    def __init__(self, host="127.0.0.1", port=0):
        self.sock = socket.create_server((host, port))
        print("RemotePdb session open at %s:%d" % self.sock.getsockname()[:2])
        conn, peer = self.sock.accept()
        self.handle = conn.makefile("rw")
        super().__init__(stdin=self.handle, stdout=self.handle)
