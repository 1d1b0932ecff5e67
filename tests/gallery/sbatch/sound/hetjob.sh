#!/bin/bash
#SBATCH --job-name=rlhf
#SBATCH --time=04:00:00
#SBATCH --output=%x_%j.log
#SBATCH --partition=cpu --nodes=1 --ntasks=1 --cpus-per-task=32 --mem=64G
#SBATCH hetjob
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64 --mem=500G

export DATA_HOST=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0" | head -n 1)
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_1" | head -n 1)
export MASTER_PORT=29510

srun --het-group=0 python -u serve_data.py --port 7070 &
srun --het-group=1 torchrun --nnodes=2 --nproc_per_node=8 \
    --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT \
    train_ppo.py --data "tcp://$DATA_HOST:7070"
