import threading
import os


def beat():
    while True:
        pass


threading.Thread(target=beat, daemon=True).start()
pid = os.fork()
