import os, sys
for line in sys.stdin:
    path, tag = line.split()
    os.replace(path + ".tmp", path)
