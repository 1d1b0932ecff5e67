#!/bin/bash
"$PYTHON" -m torch.distributed.run --standalone --nproc-per-node 2 grpo.py --max_steps 5000 --logging_steps 5
