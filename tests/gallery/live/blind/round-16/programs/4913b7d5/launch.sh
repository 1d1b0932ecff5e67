#!/bin/bash
cd "$(dirname "$0")"
source ./env.sh
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 main.py --arch resnet_s --epochs 300
