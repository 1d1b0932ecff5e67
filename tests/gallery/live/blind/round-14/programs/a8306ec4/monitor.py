import psutil


class ProcessMonitor:
    """Memory and CPU of the processes on this node, as shown next to the metrics."""

    def __init__(self, top=3):
        self.top = top
        self.latest = ""

    def sample(self):
        rows = []
        for p in psutil.process_iter(["pid", "name"]):
            try:
                with p.oneshot():
                    mem = p.memory_full_info()
                    rows.append((mem.uss >> 20, p.info["name"], p.num_threads(), sum(p.cpu_times()[:2])))
            except psutil.Error:
                continue
        rows.sort(reverse=True)
        self.latest = f"{len(rows)} procs " + " ".join(f"{n}:{m}M" for m, n, _, _ in rows[:self.top])
