#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train_lm.py --backend aot_eager --curriculum 32:40 --grow 1 --batch 2
