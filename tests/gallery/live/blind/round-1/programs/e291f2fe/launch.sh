#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29652 WORLD_SIZE=2
for r in 0 1; do
    RANK=$r LOCAL_RANK=$r "$PYTHON" train_sr.py --threads 2 &
done
wait
