#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --gpus-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --time=02:00:00
python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py
