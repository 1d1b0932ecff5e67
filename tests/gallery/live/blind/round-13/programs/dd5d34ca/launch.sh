#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$(( 21000 + RANDOM % 20000 )) WORLD_SIZE=3 OMP_NUM_THREADS=1
WORK=$(mktemp -d)
$PYTHON prepare.py --out "$WORK" --shards 3 || exit 1
for RANK in 0 1 2; do
  export RANK
  $PYTHON train.py --data "$WORK" > >(sed -u "s/^/[r$RANK] /") 2>&1 &
done
wait
