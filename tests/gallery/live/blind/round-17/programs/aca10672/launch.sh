#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
DUMP=$(mktemp -d /tmp/titan_out.XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --rdzv-backend c10d --rdzv-endpoint localhost:0 --role rank --tee 3 train.py --dump-folder "$DUMP"
