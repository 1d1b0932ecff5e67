import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer

embedder = SentenceTransformer("all-MiniLM-L6-v2").to("cuda:0")


def embed(rows):
    return {"e": embedder.encode(rows["t"])}


ds = Dataset.from_dict({"t": ["a", "b"]})
out = ds.map(embed, batched=True, num_proc=2)
