#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
export MASTER_PORT=$(( 20000 + RANDOM % 20000 ))
export WORK_DIR=${WORK_DIR:-$(mktemp -d /tmp/ae_tiles.XXXXXX)}
export HF_HUB_OFFLINE=1
$PYTHON make_tiles.py || exit 1
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON finetune.py &
done
wait
