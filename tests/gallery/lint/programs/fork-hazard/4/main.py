import os

from background import start

start()
if os.fork() == 0:
    os._exit(0)
