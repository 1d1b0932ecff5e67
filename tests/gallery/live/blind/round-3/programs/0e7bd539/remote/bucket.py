import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

rnd = random.Random(5)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        luck = rnd.random()
        if luck < 0.35:
            self.send_error(503, "Slow Down")
            return
        if luck < 0.5:
            time.sleep(6)
            self.connection.close()
            return
        body = bytes(rnd.randrange(256) for _ in range(40000))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for i in range(0, len(body), 8000):
            self.wfile.write(body[i:i + 8000])
            time.sleep(0.6)

    def log_message(self, *a):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
