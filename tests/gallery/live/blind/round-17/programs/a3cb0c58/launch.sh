#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
OUT=$(mktemp -d -t clm-XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 run_clm.py "$OUT"
