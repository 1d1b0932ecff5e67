#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec "$PYTHON" -m torch.distributed.run --nproc_per_node=3 --master_port=29645 --no-python \
    setpriv --pdeathsig KILL "$PYTHON" train_summ.py
