import json
import queue
import struct
import threading
import time
import zlib


class EventFile:
    def __init__(self, path):
        self.f = open(path, "ab", buffering=1 << 16)
        self.pending = 0

    def add(self, event):
        data = json.dumps(event).encode()
        head = struct.pack("<Q", len(data))
        self.f.write(head + struct.pack("<I", zlib.crc32(head)) + data + struct.pack("<I", zlib.crc32(data)))
        self.pending += 1

    def flush(self):
        if self.pending:
            self.f.flush()
            self.pending = 0


class WriterThread(threading.Thread):
    """Takes events off the queue and flushes the file every `flush_secs`."""

    def __init__(self, q, record_writer, flush_secs):
        super().__init__(daemon=True, name="event-writer")
        self.q, self.writer, self.flush_secs = q, record_writer, flush_secs
        self.next_flush = 0.0

    def run(self):
        while True:
            now = time.time()
            wait = self.next_flush - now
            try:
                event = self.q.get(True, wait) if wait > 0 else self.q.get(False)
                if event is None:
                    return
                self.writer.add(event)
            except queue.Empty:
                pass
            if time.time() > self.next_flush:
                self.writer.flush()
                self.next_flush = time.time() + self.flush_secs


class SummaryWriter:
    def __init__(self, path, max_queue=200, flush_secs=120):
        self.q = queue.Queue(max_queue)
        self.thread = WriterThread(self.q, EventFile(path), flush_secs)
        self.thread.start()

    def add_scalar(self, tag, value, step):
        self.q.put({"tag": tag, "value": float(value), "step": step, "wall_time": time.time()})

    def close(self):
        self.q.put(None)
        self.thread.join()
