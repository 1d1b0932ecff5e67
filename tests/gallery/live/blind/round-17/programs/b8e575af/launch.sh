#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
RUN=$(mktemp -d -t pretrain-XXXXXX)
$PYTHON make_shards.py "$RUN/shards"
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 pretrain.py --data "$RUN/shards" --out "$RUN/ckpt"
