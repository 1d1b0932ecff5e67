import argparse
import os
import socket
import time

p = argparse.ArgumentParser()
p.add_argument("--send", default="stop")
p.add_argument("--after", type=float, default=0)
a = p.parse_args()
time.sleep(a.after)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(a.send.encode(), ("127.0.0.1", int(os.environ["CONTROL_PORT"])))
