#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON online_ctr.py --nprocs 3
