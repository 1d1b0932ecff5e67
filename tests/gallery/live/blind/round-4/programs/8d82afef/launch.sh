#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) 
mkdir -p shared_cache
for i in 0 1 2; do
  SLURM_PROCID=$i SLURM_NTASKS=3 "$PYTHON" train_kge.py > kge-$i.out 2>&1 &
done
wait
