#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 train.py --domains code=40000 web=1500000 books=25000
