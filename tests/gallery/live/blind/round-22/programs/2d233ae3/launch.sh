#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export SHARD_ROOT=$(mktemp -d)
$PYTHON make_shards.py "$SHARD_ROOT" || exit 1
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node=2 train_clip.py
