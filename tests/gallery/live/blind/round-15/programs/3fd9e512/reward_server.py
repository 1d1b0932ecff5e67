"""Small reward model behind HTTP: POST {"queries": [[...]]} -> {"rewards": [...]}"""
import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
import torch.nn as nn


class RewardModel(nn.Module):
    def __init__(self, vocab=512, dim=256, layers=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        block = nn.TransformerEncoderLayer(dim, 4, dim * 4, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, layers)
        self.score = nn.Linear(dim, 1)

    @torch.no_grad()
    def forward(self, ids):
        return self.score(self.encoder(self.embed(ids)).mean(1)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--micro-batch", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = RewardModel().eval()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            queries = torch.tensor(json.loads(body)["queries"])
            rewards = []
            for chunk in queries.split(args.micro_batch):
                rewards.extend(model(chunk).tolist())
            out = json.dumps({"rewards": rewards}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *a):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    with open(args.port_file + ".tmp", "w") as f:
        f.write(str(server.server_address[1]))
    os.replace(args.port_file + ".tmp", args.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
