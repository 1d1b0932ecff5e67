#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --gpus-per-node=8 --cpus-per-task=64 --exclusive
#SBATCH --time=02:00:00
source /work/env/bin/activate
deepspeed --num_gpus=8 --master_port 29512 train.py --deepspeed ds_config.json
