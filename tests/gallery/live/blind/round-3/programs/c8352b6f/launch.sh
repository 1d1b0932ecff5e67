#!/bin/bash
"$PYTHON" -m torch.distributed.run --nproc-per-node 3 --master-port $((20000 + RANDOM % 20000)) \
   --log-dir ./logs --tee 3 -m recipe.train --manifest data/train.jsonl
