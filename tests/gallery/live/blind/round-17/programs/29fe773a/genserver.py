"""Small generation server. One JSON request per line, one JSON response per line."""
import argparse
import asyncio
import json
import random


class State:
    version = 0
    bias = [0.0] * 8


async def handle(reader, writer, state, rng, latency):
    while True:
        line = await reader.readline()
        if not line:
            break
        req = json.loads(line)
        if req["op"] == "weights":
            state.version, state.bias = req["version"], req["bias"]
            resp = {"ok": True}
        else:
            await asyncio.sleep(rng.lognormvariate(0, 0.25) * latency)
            weights = [2.718 ** min(b, 3.0) for b in state.bias]
            samples = [rng.choices(range(8), weights=weights, k=16) for _ in range(req["n"])]
            resp = {"gid": req["gid"], "samples": samples, "version": state.version}
        writer.write(json.dumps(resp).encode() + b"\n")
        await writer.drain()
    writer.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--latency", type=float, default=0.25)
    args = parser.parse_args()
    state, rng = State(), random.Random(0)
    server = await asyncio.start_server(lambda r, w: handle(r, w, state, rng, args.latency), "127.0.0.1", 0)
    with open(args.port_file, "w") as f:
        f.write(str(server.sockets[0].getsockname()[1]))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
