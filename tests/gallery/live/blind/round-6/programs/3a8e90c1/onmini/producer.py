import random


class BatchIterator:
    def __init__(self, seed=0, tokens=256, vocab=300):
        self.rng = random.Random(seed)
        self.tokens, self.vocab = tokens, vocab

    def __iter__(self):
        while True:
            length = self.rng.randint(8, 24)
            n = self.tokens // length
            src = [[self.rng.randrange(2, self.vocab) for _ in range(length)] for _ in range(n)]
            yield {"src": src, "tgt": [s[::-1] for s in src]}


def batch_producer(queues, semaphore, opt):
    """Builds the batches once and deals them out to the trainers."""
    for i, b in enumerate(BatchIterator(opt.seed)):
        semaphore.acquire()
        queues[i % len(queues)].put(b, False)


class BatchReceiver:
    def __init__(self, queue, semaphore):
        self.queue, self.semaphore = queue, semaphore

    def __iter__(self):
        while True:
            b = self.queue.get()
            self.semaphore.release()
            yield b
