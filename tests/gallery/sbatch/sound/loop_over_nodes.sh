#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=60
#SBATCH --time=10:00:00
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
MASTER=${nodes[0]}
PORT=$((20000 + SLURM_JOB_ID % 10000))
for i in "${!nodes[@]}"; do
  srun --nodes=1 --ntasks=1 -w "${nodes[$i]}" \
    torchrun --nnodes=2 --node_rank=$i --nproc_per_node=8 --master_addr=$MASTER --master_port=$PORT train.py &
done
wait
