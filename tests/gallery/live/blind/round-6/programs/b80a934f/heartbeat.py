import json
import threading
import time


class Heartbeat(threading.Thread):
    def __init__(self, path, period=20):
        super().__init__(daemon=True, name="heartbeat")
        self.path, self.period, self.state = path, period, {}

    def run(self):
        while True:
            with open(self.path, "w") as f:
                json.dump(dict(self.state, t=time.time()), f)
            time.sleep(self.period)
