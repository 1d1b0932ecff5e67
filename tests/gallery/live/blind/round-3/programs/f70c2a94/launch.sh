#!/bin/bash
set -ex
NGPU=${NGPU:-3}
CONFIG=${CONFIG:-debug.json}
"$PYTHON" -m torch.distributed.run --nproc_per_node=${NGPU} --rdzv_backend c10d --rdzv_endpoint="localhost:$((20000 + RANDOM % 20000))" \
  --local-ranks-filter 0 --role rank --tee 3 -m titan.train --config ${CONFIG}
