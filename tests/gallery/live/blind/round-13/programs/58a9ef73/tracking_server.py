import argparse
import json
import sqlite3
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int)
    ap.add_argument("--config")
    a = ap.parse_args()
    cfg = json.load(open(a.config))
    rtt = cfg["upstream_rtt_ms"] / 1e3
    db = sqlite3.connect(cfg["store"], check_same_thread=False)
    db.execute("create table if not exists metrics (run text, key text, value real, step integer, ts real)")

    class Api(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            m = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(rtt)
            db.execute("insert into metrics values (?, ?, ?, ?, ?)",
                       (m["run_id"], m["key"], m["value"], m["step"], time.time()))
            db.commit()
            body = b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    ThreadingHTTPServer(("127.0.0.1", a.port), Api).serve_forever()


if __name__ == "__main__":
    main()
