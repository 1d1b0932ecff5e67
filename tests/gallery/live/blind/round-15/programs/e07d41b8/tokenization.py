"""Byte level tokenizer with greedy merges, chat template and masking of user turns."""


class ByteMergeTokenizer:
    def __init__(self, merges=250):
        common = ["th", "he", "in", "er", "an", "re", "on", "at", "en", "nd", "ti", "es", "or", "te", "of",
                  "ed", "is", "it", "al", "ar", "st", "to", "nt", "ng", "se", "ha", "as", "ou", "io", "le"]
        self.merges = {}
        next_id = 256
        for a in common:
            self.merges[(ord(a[0]), ord(a[1]))] = next_id
            next_id += 1
        self.merges = dict(list(self.merges.items())[:merges])
        self.role = {"user": 509, "assistant": 510}
        self.eos = 511

    def encode(self, text):
        ids = list(text.encode())
        for pair, new in self.merges.items():
            out, i = [], 0
            while i < len(ids):
                if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
                    out.append(new)
                    i += 2
                else:
                    out.append(ids[i])
                    i += 1
            ids = out
        return ids


def encode_chat(tokenizer, messages, max_len):
    ids, labels = [], []
    for m in messages:
        body = [tokenizer.role[m["role"]]] + tokenizer.encode(m["content"]) + [tokenizer.eos]
        ids += body
        labels += body if m["role"] == "assistant" else [-100] * len(body)
    ids, labels = ids[-max_len:], labels[-max_len:]
    return ids, labels
