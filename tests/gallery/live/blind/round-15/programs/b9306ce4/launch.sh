#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON sweep.py --lrs 3e-3 1e-3 --steps 30000
