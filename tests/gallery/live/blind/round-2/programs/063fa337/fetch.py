import shutil
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1]) as r:
    shutil.copyfileobj(r, sys.stdout.buffer, 16384)
