import json
import multiprocessing as mp
from pathlib import Path

END = "__end_of_stream__"


def iter_documents(paths):
    for path in paths:
        with open(path) as f:
            for line in f:
                yield json.loads(line)["text"]


def _produce(paths, tokenize, batch_size, queue, repeat):
    buf = []
    while True:
        for text in iter_documents(paths):
            buf.append(tokenize(text))
            if len(buf) == batch_size:
                queue.put(buf)
                buf = []
        if not repeat:
            queue.put(END)
            return


class PrefetchIterator:
    """Runs the reading pipeline in a process of its own."""

    def __init__(self, paths, tokenize, batch_size, buffer_size=8, repeat=True):
        self.queue = mp.Queue(buffer_size)
        self.proc = mp.Process(target=_produce, daemon=True,
                               args=(paths, tokenize, batch_size, self.queue, repeat))
        self.proc.start()

    def __iter__(self):
        return self

    def __next__(self):
        item = self.queue.get()
        if item == END:
            raise StopIteration
        return item


def shard(folder, rank, world):
    files = sorted(Path(folder).glob("part-*.jsonl"))
    return files[rank::world]
