#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun accelerate launch --num_processes 32 --num_machines 4 --machine_rank $SLURM_PROCID --main_process_ip $head_node_ip --main_process_port 29500 train.py
