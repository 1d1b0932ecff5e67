#!/bin/bash
#SBATCH --job-name=x
#SBATCH --time=04:00:00
#SBATCH --partition=cpu --nodes=1 --ntasks=1 --cpus-per-task=16 --mem=64G
#SBATCH hetjob
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64 --mem=500G
source /work/envs/vision/bin/activate
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_1" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun --het-group=0 python loader_service.py &
srun torchrun --nnodes=2 --nproc_per_node=8 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT train.py
