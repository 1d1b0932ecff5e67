#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON main.py --tp 2 --dp 2
