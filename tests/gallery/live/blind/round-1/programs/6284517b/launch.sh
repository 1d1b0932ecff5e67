#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec "$PYTHON" -m torch.distributed.run --nproc_per_node=3 --master_port=29642 --no-python \
    setpriv --pdeathsig KILL "$PYTHON" train_vit.py
