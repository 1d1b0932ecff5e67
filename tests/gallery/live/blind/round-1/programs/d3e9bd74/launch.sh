#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec "$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_port=29643 --no-python \
    setpriv --pdeathsig KILL "$PYTHON" train.py
