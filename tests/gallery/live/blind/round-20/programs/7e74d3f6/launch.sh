#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
DATA=${DATA:-$(mktemp -d /tmp/ae_blend.XXXXXX)}
$PYTHON prepare.py --out "$DATA" || exit 1
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 pretrain.py --data "$DATA"
