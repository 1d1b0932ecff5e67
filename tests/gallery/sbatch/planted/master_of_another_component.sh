#!/bin/bash
#SBATCH --job-name=ranker
#SBATCH --time=06:00:00
#SBATCH --output=%x_%j.log
#SBATCH --partition=cpu --nodes=2 --ntasks-per-node=1 --cpus-per-task=64 --mem=100G
#SBATCH hetjob
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64 --mem=500G

source /work/envs/ranker/bin/activate
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29520

srun --het-group=0 python feature_server.py &
srun --het-group=1 bash -c 'torchrun --nnodes=2 --nproc_per_node=8 --node_rank=$SLURM_NODEID \
    --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT train_ranker.py'
