import base64
import random

rng = random.Random(11)
words = "the model reads many Pages from WebCrawl and StackOverflow about PyTorch TensorFlow LayerNorm and DataLoader".split()
with open("corpus.txt", "w") as f:
    for i in range(3000):
        line = " ".join(rng.choices(words, k=rng.randint(8, 24)))
        if i == 1319:
            line += " <img src=data:image/png;base64," + base64.b64encode(bytes(90)).decode().replace("A", "Ac") + "ACIAACIA" * 12 + "_>"
        f.write(line + "\n")
