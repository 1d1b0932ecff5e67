#!/bin/bash
cd "$(dirname "$0")"
export OUT=$(mktemp -d)
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 main.py
