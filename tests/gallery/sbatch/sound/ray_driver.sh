#!/bin/bash
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=10:00:00 --output=%x-%j.out

module load pytorch/2.5
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --block &
sleep 10
srun --nodes=1 --ntasks=1 --exclude="$head" ray start --address="$head:6379" --block &
sleep 10
srun --overlap --nodes=1 --ntasks=1 -w "$head" python main.py
