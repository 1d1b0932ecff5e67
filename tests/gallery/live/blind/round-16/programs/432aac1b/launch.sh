#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py --config configs/cifar_small.json
