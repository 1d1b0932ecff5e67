#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nproc_per_node=3 --master_addr=127.0.0.1 --master_port=$PORT \
    train_graph.py --partitions parts.json 2>&1 | tee graph.log
