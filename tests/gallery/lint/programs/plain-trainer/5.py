import os

os.putenv("NOTHING", "1")
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
os.environ["CUDA_VISIBLE_DEVICES"] = f"{2},{3}"
from transformers import Trainer as HfTrainer  # noqa: E402


class Mine(HfTrainer):
    pass


Mine(model=None).train()
