import os

os.environ["TOKENIZERS_PARALLELISM"] = "true"

from torch.utils.data import DataLoader  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

tok = AutoTokenizer.from_pretrained("gpt2")
tok(["warm"])
loader = DataLoader(["a", "b"], num_workers=2, collate_fn=tok)
