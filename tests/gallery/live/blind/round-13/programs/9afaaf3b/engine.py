import argparse
import json
import logging
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format="%(levelname)s %(asctime)s [%(module)s.py:%(lineno)d] %(message)s")
log = logging.getLogger("engine")


class Engine:
    def __init__(self, vocab, seed):
        self.rng = random.Random(seed)
        self.vocab = vocab
        self.weights = [1.0] * vocab
        self.n = 0

    def generate(self, prompts, max_tokens):
        outs = []
        for p in prompts:
            toks = self.rng.choices(range(self.vocab), weights=self.weights, k=max_tokens)
            outs.append(toks)
        self.n += 1
        log.info("Received request cmpl-%08d: prompt_token_ids: %s, params: SamplingParams(temperature=1.0, "
                 "max_tokens=%d, n=%d)", self.n, prompts[0], max_tokens, len(prompts))
        log.info("Avg prompt throughput: %.1f tokens/s, running: %d reqs, waiting: 0 reqs, cache usage: %.1f%%",
                 12.0 * len(prompts), len(prompts), 100 * len(prompts) / 256)
        return outs

    def update_weights(self, weights):
        self.weights = weights


def make_handler(engine):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            t0 = time.time()
            if self.path == "/generate":
                res = {"tokens": engine.generate(body["prompts"], body["max_tokens"])}
            else:
                engine.update_weights(body["weights"])
                res = {"ok": True}
            data = json.dumps(res).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            log.info('%s "POST %s" 200 %.1fms', self.client_address[0], self.path, 1e3 * (time.time() - t0))

        def log_message(self, *a):
            pass

    return Handler


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=64)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    srv = HTTPServer(("127.0.0.1", 0), make_handler(Engine(args.vocab, args.seed)))
    print(f"engine listening on port {srv.server_port}", flush=True)
    srv.serve_forever()
