import asyncio

RUBRICS = {"math": (1.0, 0.2), "chat": (0.6, 0.4), "summaries": (0.7, 0.1), "code": (0.9, 0.5)}


class RubricRegistry:
    """Rubric client of the trainer; one request on the wire at a time."""

    def __init__(self):
        self.wire = asyncio.Lock()
        self.requests = 0

    async def fetch(self, domain):
        async with self.wire:
            await asyncio.sleep(0.05)
            self.requests += 1
            return RUBRICS[domain]


class RolloutSource:
    def __init__(self, rank, total=4000):
        self.rank = rank
        early = ["math", "chat"] if rank == 0 else ["chat", "summaries"]
        late = ["math", "chat"] if rank == 0 else ["chat", "summaries", "code"]
        self.plan = [early[i % 2] for i in range(60)] + [late[i % len(late)] for i in range(total)]

    async def generate(self, step, batch):
        await asyncio.sleep(0.1)
        return [(self.plan[step], f"{self.plan[step]} answer {step * batch + i}") for i in range(batch)]
