import json
import os
import subprocess
import sys
import time
import urllib.request

from accelerate.tracking import GeneralTracker, on_main_process


class StoreTracker(GeneralTracker):
    name = "store"
    requires_logging_directory = False
    main_process_only = True

    @on_main_process
    def __init__(self, run_dir):
        super().__init__()
        here = os.path.dirname(os.path.abspath(__file__))
        self.proc = subprocess.Popen(
            [sys.executable, os.path.join(here, "tracker_service.py"), os.path.join(run_dir, "store")],
            stdout=subprocess.PIPE, stderr=open(os.path.join(run_dir, "tracker.log"), "w"), text=True)
        self.url = f"http://127.0.0.1:{int(self.proc.stdout.readline())}"

    @property
    def tracker(self):
        return self

    def store_init_configuration(self, values):
        pass

    def _post(self, route, obj):
        req = urllib.request.Request(self.url + route, data=json.dumps(obj).encode())
        urllib.request.urlopen(req).read()

    @on_main_process
    def log(self, values, step=None, **kwargs):
        self._post("/log", {"step": step, **values})

    @on_main_process
    def log_artifact(self, path):
        self._post("/artifact", {"path": path})

    @on_main_process
    def finish(self):
        print("tracker: waiting for uploads to complete", flush=True)
        while True:
            status = json.loads(urllib.request.urlopen(self.url + "/status").read())
            if status["pending"] == 0:
                break
            time.sleep(0.5)
        self.proc.terminate()
        self.proc.wait()
