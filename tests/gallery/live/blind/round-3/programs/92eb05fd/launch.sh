#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
export OMP_NUM_THREADS=1
mkdir -p out
for i in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$i LOCAL_RANK=$i "$PYTHON" -u tools/train_net.py --output out 2> out/stderr.$i &
done
wait
