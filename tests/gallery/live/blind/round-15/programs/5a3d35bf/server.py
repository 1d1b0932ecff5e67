import logging
import queue
import threading
from dataclasses import dataclass, field

import torch

log = logging.getLogger("server")


@dataclass
class Request:
    prompt: list
    max_tokens: int
    out: queue.Queue = field(default_factory=queue.Queue)


class BatchGenerator:
    def __init__(self, model, max_batch=4):
        self.model = model
        self.max_batch = max_batch
        self.active = {}
        self.uid = 0

    def insert(self, request):
        self.uid += 1
        self.active[self.uid] = (request, list(request.prompt), request.max_tokens)
        return self.uid

    @torch.no_grad()
    def next(self):
        finished = []
        for uid, (req, ids, left) in list(self.active.items())[: self.max_batch]:
            logits = self.model(torch.tensor([ids]))[0, -1]
            ids.append(int(logits.argmax()))
            left -= 1
            if left == 0:
                finished.append((req, ids))
                del self.active[uid]
            else:
                self.active[uid] = (req, ids, left)
        return finished


class ResponseGenerator:
    def __init__(self, model_fn):
        self.model_fn = model_fn
        self.requests = queue.Queue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._generate, name="generate", daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def generate(self, prompt, max_tokens=12):
        req = Request(prompt, max_tokens)
        self.requests.put(req)
        return req.out.get()

    def _next_request(self, batch_generator):
        try:
            if batch_generator is not None:
                return self.requests.get_nowait()
            return self.requests.get(timeout=0.1)
        except queue.Empty:
            return None

    def _generate(self):
        batch_generator = None
        while not self._stop.is_set():
            request = self._next_request(batch_generator)
            if request is not None:
                if batch_generator is None:
                    batch_generator = BatchGenerator(self.model_fn())
                batch_generator.insert(request)
                continue
            if batch_generator is not None:
                for req, ids in batch_generator.next():
                    req.out.put(ids)
