#!/bin/bash -l
#SBATCH -p gpu -N 2 --ntasks-per-node=1 --gpus-per-node=8 -c 64
#SBATCH -t 1-00:00:00 -o slurm-%j.log

set -euo pipefail
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)

echo Node IP: $head_node_ip
export LOGLEVEL=INFO

srun torchrun \
  --nnodes 2 \
  --nproc_per_node 8 \
  --rdzv_id $RANDOM \
  --rdzv_backend c10d \
  --rdzv_endpoint $head_node_ip:29500 \
  /work/project/train.py 50 10
