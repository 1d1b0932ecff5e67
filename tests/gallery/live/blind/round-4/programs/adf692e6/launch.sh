#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
mkdir -p mnt logs
exec unshare -m bash -c '
"$PYTHON" cephlite/objfs.py mnt --map cephlite/osdmap.json > logs/objfs.log 2>&1 &
until grep -q objstore /proc/self/mountinfo; do sleep 0.2; done
for r in 0 1; do
  RANK=$r "$PYTHON" train_embeddings.py mnt > logs/trainer$r.log 2>&1 &
done
wait'
