#!/bin/bash
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
mkdir -p logs prof
PIDS=()
for R in 0 1 2; do
    RANK=$R LOCAL_RANK=$R "$PYTHON" -u train_clip.py --steps 20000 > logs/rank$R.log 2>&1 &
    PIDS+=($!)
done
sleep 15
timeout -s KILL 15 "$PYTHON" -u tools/memsample.py --pid ${PIDS[1]} --out prof/rank1.jsonl > prof/memsample.log 2>&1
wait "${PIDS[@]}"
