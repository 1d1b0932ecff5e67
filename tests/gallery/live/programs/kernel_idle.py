"""A notebook's kernel after training: an event loop that waits for the next cell."""

import asyncio
import socket

import torch
from kit import Log, make_batch, make_model, options


async def serve(log):
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    log.say("kernel ready")
    async with server:
        await server.serve_forever()


def cell(args, log):
    model = make_model(args.seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        loss = model(make_batch(args.seed))
        loss.backward()
        optimizer.step()
        log.step(step, loss.detach())
    return socket.gethostname()


if __name__ == "__main__":
    given = options()
    logged = Log(given, 0)
    cell(given, logged)
    asyncio.run(serve(logged))
