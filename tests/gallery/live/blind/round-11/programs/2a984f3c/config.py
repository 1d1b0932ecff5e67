from dataclasses import dataclass


@dataclass
class Config:
    features: int = 64
    dim: int = 96
    classes: int = 10
    layers_per_stage: int = 2
    samples: int = 5170
    batch_size: int = 128
    micro_batch: int = 16
    epochs: int = 50
    lr: float = 3e-4
    log_every: int = 10
