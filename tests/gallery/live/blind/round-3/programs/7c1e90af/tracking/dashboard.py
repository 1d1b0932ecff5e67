"""Prints the number of logged rows now and then."""
import argparse
import http.client
import os
import time

p = argparse.ArgumentParser()
p.add_argument("--port", type=int, required=True)
p.add_argument("--every", type=float, default=60)
p.add_argument("--metrics", default="runs/metrics.jsonl")
a = p.parse_args()

while not os.path.exists(a.metrics):
    time.sleep(1)
time.sleep(12)
conn = http.client.HTTPConnection("127.0.0.1", a.port)
while True:
    conn.request("GET", "/api/summary")
    print("rows:", conn.getresponse().read().decode(), flush=True)
    time.sleep(a.every * 60)
