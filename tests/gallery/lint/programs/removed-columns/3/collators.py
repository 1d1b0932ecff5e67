class AudioCollator:
    def __init__(self, processor):
        self.processor = processor

    def __call__(self, batch):
        return self.processor([b["audio"]["array"] for b in batch])
