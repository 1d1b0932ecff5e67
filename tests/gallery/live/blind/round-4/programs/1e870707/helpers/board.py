import glob
import sys
import time

while True:
    print(time.strftime("%T"), "runs:", len(glob.glob(sys.argv[1] + "/*")), flush=True)
    time.sleep(5)
