"""One rank logs to an experiment tracker over HTTP; the server takes the request and never answers."""

import json
import urllib.request

from kit import Trainer, connect, options, start


def send_metrics(server, values):
    request = urllib.request.Request(f"http://{server}/api/runs/metrics", json.dumps(values).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return reply.status


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        loss = trainer.train_step(step)
        if step == args.when and rank == args.pick:
            send_metrics(args.server, {"step": step, "loss": float(loss)})


if __name__ == "__main__":
    start(main, options(server="127.0.0.1:1"))
