#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=2 HF_HUB_OFFLINE=1
export HF_DATASETS_CACHE=$(mktemp -d /tmp/hfcache.XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 run_clf.py --rounds 6 --pool-size 2400 --steps-per-round 60
