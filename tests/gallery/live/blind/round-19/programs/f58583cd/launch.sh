#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
exec $PYTHON run.py --tp 2 --stats-every 30 --stats-after 30
