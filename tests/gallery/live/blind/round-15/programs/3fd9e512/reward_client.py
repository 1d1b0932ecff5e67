import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor


class RemoteReward:
    """Sends query batches to a list of reward endpoints."""

    def __init__(self, endpoints, shard_size=16, timeout=600):
        self.endpoints = endpoints
        self.shard_size = shard_size
        self.timeout = timeout
        self.pool = ThreadPoolExecutor(max_workers=max(1, len(endpoints)))

    def _post(self, url, queries):
        data = json.dumps({"queries": queries}).encode()
        req = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(req, timeout=self.timeout) as resp:
            return json.loads(resp.read())["rewards"]

    def __call__(self, queries):
        shards = [queries[i:i + self.shard_size] for i in range(0, len(queries), self.shard_size)]
        futures = []
        for i, shard in enumerate(shards):
            url = self.endpoints[i % len(self.endpoints)]
            futures.append(self.pool.submit(self._post, url, shard))
        rewards = []
        for f in futures:
            rewards.extend(f.result())
        return rewards
