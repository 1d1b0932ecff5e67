#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
export REGISTRY=http://127.0.0.1:$((40000 + RANDOM % 9000))
"$PYTHON" -u registry.py "$REGISTRY" > registry.log 2>&1 &
REG=$!
PIDS=()
for R in 0 1 2; do
    RANK=$R LOCAL_RANK=$R "$PYTHON" -u finetune.py --load-path checkpoints/ep40-ba8000.pt > rank$R.log 2>&1 &
    PIDS+=($!)
done
wait "${PIDS[@]}"
kill $REG
