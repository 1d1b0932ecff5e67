import argparse
import json
import logging
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

p = argparse.ArgumentParser()
p.add_argument("--port", type=int, required=True)
args = p.parse_args()
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("reward")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        scores = []
        for s in body["samples"]:
            scores.append(len(set(s)) / len(s))
            log.info("scored %d tokens -> %.3f", len(s), scores[-1])
        out = json.dumps({"scores": scores}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, fmt, *a):
        log.info("%s " + fmt, self.client_address[0], *a)


srv = HTTPServer(("127.0.0.1", args.port), Handler)
log.info("reward model listening on %d", args.port)
srv.serve_forever()
