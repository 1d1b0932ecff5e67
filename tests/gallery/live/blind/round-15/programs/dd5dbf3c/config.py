from dataclasses import dataclass


@dataclass
class Config:
    vocab: int = 1024
    dim: int = 128
    depth: int = 6
    heads: int = 4
    batch: int = 4
    context: int = 48
    steps: int = 100000
    lr: float = 3e-4
    log_every: int = 5
    skip_start: int = 30        # updates before the layer-skip schedule sets in
    skip_ramp: int = 20000      # updates until it is at its full strength
    skip_max: float = 0.3
    compile: bool = True
    recompile_limit: int = 4096
