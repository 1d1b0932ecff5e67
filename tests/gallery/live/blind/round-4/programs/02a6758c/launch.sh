#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3
mkdir -p run
for r in 0 1 2; do
  RANK=$r "$PYTHON" pretrain_gpt.py --micro-batch 4 > run/worker.$r.log 2>&1 &
  echo $! > run/worker.$r.pid
done
bash ops/node_guard.sh run > run/guard.log 2>&1 &
wait $(cat run/worker.*.pid)
kill %4 2>/dev/null
