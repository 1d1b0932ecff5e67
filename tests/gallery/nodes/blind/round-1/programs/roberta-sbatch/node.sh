#!/bin/bash
NODES=${SLURM_NNODES:-1}
HEAD=$(scontrol show hostname "${SLURM_STEP_NODES}" 2>/dev/null | head -1)
exec torchrun --nnodes=$NODES --nproc-per-node=2 --rdzv-backend=c10d \
    --rdzv-endpoint="${HEAD:-localhost}:29400" --rdzv-id="$SLURM_JOB_ID" mlm.py
