import time

import httpx


class JudgeClient:
    def __init__(self, port, poll=0.01):
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0)
        self.poll = poll

    def wait_ready(self, tries=300):
        for _ in range(tries):
            try:
                self.http.get("/result/-1")
                return
            except httpx.TransportError:
                time.sleep(0.1)
        raise RuntimeError("judge did not come up")

    def submit(self, samples):
        return self.http.post("/submit", json={"samples": samples}).json()["id"]

    def fetch(self, ident):
        while True:
            rewards = self.http.get(f"/result/{ident}").json()["rewards"]
            if rewards is not None:
                return rewards
            time.sleep(self.poll)
