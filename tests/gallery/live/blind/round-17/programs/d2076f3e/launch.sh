#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=3
export SCENES=${SCENES:-$(mktemp -d)}
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_ppo.py --scenes "$SCENES" &
done
wait
