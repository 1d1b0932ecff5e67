import os

from transformers import AutoModel

os.environ["HF_HUB_OFFLINE"] = "1"


def main():
    AutoModel.from_pretrained("gpt2")


main()
