import json
import os
import urllib.request


class Run:
    def __init__(self, project, config):
        self.url = f"http://127.0.0.1:{os.environ['TRACKING_PORT']}/api/log"
        self.project = project
        self.log({"config": config}, step=0)

    def log(self, metrics, step):
        data = json.dumps({"project": self.project, "step": step, **metrics}).encode()
        req = urllib.request.Request(self.url, data=data,
                                     headers={"Content-Type": "application/json", "Connection": "close"})
        with urllib.request.urlopen(req) as resp:
            return json.loads(resp.read())
