import asyncio
import threading


class RewardScorer:
    """Scores completions concurrently on its own loop; callable from ordinary code."""

    def __init__(self, registry, owner_loop):
        self.registry = registry
        self.owner_loop = owner_loop
        self.rubrics = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="reward-loop", daemon=True).start()

    async def warm_up(self, domains):
        for domain in domains:
            self.rubrics[domain] = await self.registry.fetch(domain)

    async def _rubric(self, domain):
        if domain not in self.rubrics:
            request = asyncio.run_coroutine_threadsafe(self.registry.fetch(domain), self.owner_loop)
            self.rubrics[domain] = await asyncio.wrap_future(request)
        return self.rubrics[domain]

    async def _score_one(self, domain, text):
        scale, penalty = await self._rubric(domain)
        await asyncio.sleep(0.01)
        return scale - penalty * (len(text) % 7) / 7

    async def _score_all(self, samples):
        return await asyncio.gather(*(self._score_one(d, t) for d, t in samples))

    def score(self, samples):
        return asyncio.run_coroutine_threadsafe(self._score_all(samples), self.loop).result()
