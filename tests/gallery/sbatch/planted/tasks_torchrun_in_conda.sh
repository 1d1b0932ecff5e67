#!/bin/bash
#SBATCH --job-name=mae
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --mem=200G
#SBATCH --time=12:00:00
#SBATCH --output=slurm-%j.out
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=me@example.org

module purge
module load cuda/12.1 gcc/12
source ~/miniconda3/etc/profile.d/conda.sh
conda activate mae

nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address)

export OMP_NUM_THREADS=8
srun torchrun \
    --nnodes 2 --nproc_per_node 4 \
    --rdzv_id $SLURM_JOB_ID --rdzv_backend c10d \
    --rdzv_endpoint $head_node_ip:29500 \
    main_pretrain.py --batch_size 64
