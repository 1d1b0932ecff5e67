#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" prepare_data.py
"$PYTHON" -m torch.distributed.run --nnodes=1 --nproc_per_node=4 --master_addr=127.0.0.1 --master_port=$PORT \
    --log-dir runs --redirects 3 finetune.py data/optimized
