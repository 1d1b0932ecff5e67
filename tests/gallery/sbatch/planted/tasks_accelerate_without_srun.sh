#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=02:00:00
accelerate launch --num_machines 2 --num_processes 8 --main_process_ip $(hostname) --main_process_port 29501 --machine_rank 0 run.py
