#!/bin/bash
export OMP_NUM_THREADS=1
exec "$PYTHON" launcher.py --nproc 2 -- train_grpo.py --iterations 400
