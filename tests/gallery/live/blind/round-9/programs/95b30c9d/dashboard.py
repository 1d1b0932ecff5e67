import argparse
import csv
import http.client
import json
import time

if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--delay", type=float, default=20)
    p.add_argument("--every", type=float, default=5)
    a = p.parse_args()
    time.sleep(a.delay)
    conn = http.client.HTTPConnection("127.0.0.1", a.port)
    with open(a.out, "w", newline="") as f:
        out = csv.writer(f)
        while True:
            conn.request("GET", "/stats")
            s = json.loads(conn.getresponse().read())
            out.writerow([int(time.time()), s["rows"], s["hits"], s["uptime"]])
            f.flush()
            time.sleep(a.every)
