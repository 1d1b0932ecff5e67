from model import Net
import os

os.environ.setdefault("MKL_NUM_THREADS", "4")

net = Net()
