#!/bin/bash
#SBATCH --partition=gpu
#SBATCH -D /work/project
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:59:00
export GPUS_PER_NODE=4
head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export LAUNCHER="accelerate launch \
    --num_processes $((SLURM_NNODES * GPUS_PER_NODE)) \
    --num_machines $SLURM_NNODES \
    --rdzv_backend c10d \
    --main_process_ip $head_node_ip \
    --main_process_port $((20000 + SLURM_JOB_ID % 10000)) \
    "
export SCRIPT="complete_nlp_example.py"
export CMD="$LAUNCHER $SCRIPT --mixed_precision fp16"
srun $CMD
