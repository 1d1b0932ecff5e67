#!/usr/bin/env bash
#SBATCH -J run -p gpu -N 2 -n 16
#SBATCH --gres=gpu:8 -c 8 -t 600
head_node=$(scontrol show hostname $SLURM_NODELIST | head -n1)
srun python -u -m torch.distributed.run \
    --nnodes 2 --nproc_per_node 8 \
    --rdzv_id $SLURM_JOBID --rdzv_backend c10d \
    --rdzv_endpoint "$head_node:$(( 20000 + SLURM_JOBID % 10000 ))" \
    train.py
