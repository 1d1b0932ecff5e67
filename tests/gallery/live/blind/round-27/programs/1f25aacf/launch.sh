#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node=2 learner.py
