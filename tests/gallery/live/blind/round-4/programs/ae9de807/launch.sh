#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export TORCH_EXTENSIONS_DIR=$PWD/.torch_extensions/py311_cpu
export PATH="$(dirname "$PYTHON"):$PATH"
export MASTER_PORT=$((20000 + RANDOM % 20000))
exec "$PYTHON" -u train_seq.py --gpus 2 --batch-size 16 > train_seq.out 2>&1
