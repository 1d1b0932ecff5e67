"""Fully asynchronous rollout: a background event loop keeps requests in flight while training runs."""
import asyncio
import json
import queue
import threading
import time


class AsyncRolloutWorker:
    def __init__(self, port, concurrency=8, queue_size=32, samples_per_group=4):
        self.port = port
        self.concurrency = concurrency
        self.samples_per_group = samples_per_group
        self.output_queue = queue.Queue(maxsize=queue_size)
        self.loop = asyncio.new_event_loop()
        self.active = set()
        self.next_gid = 0
        self.running = True
        self.paused = False
        self.thread = threading.Thread(target=self._run, name="rollout-loop", daemon=True)

    def start(self):
        self.thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._continuous())

    async def _request(self, payload):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(json.dumps(payload).encode() + b"\n")
            await writer.drain()
            return json.loads(await reader.readline())
        finally:
            writer.close()

    def _submit(self):
        gid = self.next_gid
        self.next_gid += 1
        task = self.loop.create_task(self._request({"op": "generate", "gid": gid, "n": self.samples_per_group}))
        self.active.add(task)
        task.add_done_callback(self._make_callback(gid))

    def _make_callback(self, gid):
        def on_done(task):
            self.active.discard(task)
            self.output_queue.put((gid, task.result()))
        return on_done

    async def _continuous(self):
        while self.running:
            while not self.paused and len(self.active) < self.concurrency:
                self._submit()
            await asyncio.sleep(0.005)

    async def _update(self, version, bias):
        self.paused = True
        while self.active:
            await asyncio.sleep(0.005)
        await self._request({"op": "weights", "version": version, "bias": bias})
        self.paused = False

    def update_weights(self, version, bias):
        return asyncio.run_coroutine_threadsafe(self._update(version, bias), self.loop).result()

    def collect(self, target):
        groups = []
        while len(groups) < target:
            try:
                groups.append(self.output_queue.get(timeout=0.5))
            except queue.Empty:
                continue
        groups.sort(key=lambda item: item[0])
        return [group for _, group in groups]
