#!/bin/bash
export OMP_NUM_THREADS=1
exec "$PYTHON" -u start.py --nproc 2 lm.py
