#!/bin/bash
export TORCHINDUCTOR_CACHE_DIR=$PWD/inductor_cache
"$PYTHON" -m torch.distributed.run --standalone --nproc-per-node 2 train_gpt.py --compile
