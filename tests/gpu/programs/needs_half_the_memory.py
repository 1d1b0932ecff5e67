"""A model that takes half of the GPU's memory."""

import torch


def main():
    _, total = torch.cuda.mem_get_info()
    weights = [torch.empty(total // 32, dtype=torch.uint8, device="cuda") for _ in range(16)]
    print(f"{len(weights)} shards loaded", flush=True)


if __name__ == "__main__":
    main()
