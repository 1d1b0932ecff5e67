from os import environ

import torch
import datasets


def setup():
    environ.update({"HF_DATASETS_CACHE": "/scratch/hf", "X": "1"})


if __name__ == "__main__":
    setup()
    datasets.load_dataset("imdb")
