#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MODEL_HUB=http://127.0.0.1:18921
exec "$PYTHON" -m torch.distributed.run --nproc_per_node=2 --master_port=29629 --no-python \
    setpriv --pdeathsig KILL "$PYTHON" finetune_ner.py
