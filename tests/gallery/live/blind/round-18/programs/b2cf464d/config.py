from dataclasses import dataclass, field


@dataclass
class Stage:
    name: str
    seq_len: int
    steps: int
    docs_per_shard: list
    lr: float


@dataclass
class Config:
    vocab: int = 512
    width: int = 64
    batch: int = 8
    stages: list = field(default_factory=lambda: [
        Stage("short", 32, 100, [3000, 3000, 3000], 3e-3),
        Stage("medium", 64, 100, [3000, 3500, 3000], 2e-3),
        Stage("long", 128, 4000, [12000, 12000, 900000], 1e-3),
    ])
