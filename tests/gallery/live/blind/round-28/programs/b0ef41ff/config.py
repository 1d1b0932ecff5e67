from dataclasses import dataclass


@dataclass
class RunConfig:
    trainers: int = 3
    steps: int = 20000
    sync_every: int = 8
    ramp_at: int = 44
    accumulate: int = 2
    vocab: int = 64
    dim: int = 24
    prompts: int = 6
    length: int = 16

    @property
    def sampler_rank(self):
        return self.trainers

    def microbatches(self, step):
        """The global batch doubles once the loss has come down."""
        return 1 if step < self.ramp_at else self.accumulate
