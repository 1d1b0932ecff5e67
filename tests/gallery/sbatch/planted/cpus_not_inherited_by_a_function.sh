#!/bin/bash
#SBATCH -p gpu -N 2 --ntasks-per-node=1 --gres=gpu:8 -c 48 -t 60
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((12000 + SLURM_JOB_ID % 20000))
launch() {
  srun --kill-on-bad-exit=1 torchrun --nnodes=2 --nproc-per-node=8 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d \
    --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT "$@"
}
launch train.py --lr 1e-4
