import torch


class Encoder(torch.nn.Module):
    def forward(self, x):
        return x


if __name__ == "__main__":
    print(Encoder().cuda()(torch.ones(1, device="cuda")))
