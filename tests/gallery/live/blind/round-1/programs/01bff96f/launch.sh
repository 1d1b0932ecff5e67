#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TORCH_EXTENSIONS_DIR="$PWD/ext" MAX_JOBS=2
exec "$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_port=29653 --no-python \
    setpriv --pdeathsig KILL "$PYTHON" train_rope.py
