import io
from datetime import timedelta

import torch
import torch.distributed as dist


class ModelExchange:
    """Models travel through the key-value store, so that clients need not move in step."""

    def __init__(self):
        store = dist.distributed_c10d._get_default_store()
        self.store = dist.PrefixStore("fed", store)
        self.store.set_timeout(timedelta(hours=3))

    def _push(self, key, payload):
        buffer = io.BytesIO()
        torch.save(payload, buffer)
        self.store.set(key, buffer.getvalue())

    def _pull(self, key):
        return torch.load(io.BytesIO(self.store.get(key)), weights_only=True)

    def publish_global(self, round_id, state):
        self._push(f"global/{round_id}", state)
        if round_id > 1:
            self.store.delete_key(f"global/{round_id - 2}")

    def fetch_global(self, round_id):
        return self._pull(f"global/{round_id}")

    def send_update(self, round_id, client, state, n_samples):
        self._push(f"update/{round_id}/{client}", {"state": state, "n": torch.tensor(n_samples)})

    def collect_update(self, round_id, client):
        key = f"update/{round_id}/{client}"
        update = self._pull(key)
        self.store.delete_key(key)
        return update["state"], int(update["n"])
