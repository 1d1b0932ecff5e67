#!/bin/bash
"$PYTHON" -m torch.distributed.run --nproc-per-node 3 --master-port $((20000 + RANDOM % 20000)) \
  tools/plain_train_net.py --eval-period 120
