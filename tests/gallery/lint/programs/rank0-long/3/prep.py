from huggingface_hub import snapshot_download


def tokenize_all(name):
    path = snapshot_download(name)
    print(path)
