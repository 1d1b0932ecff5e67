"""Closed-loop rollout metrics for the planner."""
import time

import torch
import torch.distributed as dist


class ClosedLoopEvaluator:
    def __init__(self, scenarios, horizon=20, dt=0.1):
        self.scenarios = scenarios
        self.horizon = horizon
        self.dt = dt
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world = dist.get_world_size() if dist.is_initialized() else 1

    @torch.no_grad()
    def rollout(self, net, ego, agents):
        dev = []
        for _ in range(self.horizon):
            plan = net(torch.cat([ego, agents.flatten(1)], dim=1)).view(len(ego), -1, 2)
            ego = ego + torch.cat([plan[:, 0] * self.dt, plan[:, 1] * 0.0], dim=1)[:, : ego.shape[1]]
            agents = agents + 0.01 * torch.randn_like(agents)
            dev.append((agents[..., :2] - ego[:, None, :2]).norm(dim=-1).amin(dim=1))
        return torch.stack(dev).amin(dim=0)

    def run(self, net):
        t0 = time.time()
        mine = self.scenarios[self.rank :: self.world]
        clearances = [self.rollout(net, ego, agents) for ego, agents in mine]
        if self.world > 1:
            dist.barrier()
        c = torch.cat(clearances)
        return {
            "min_clearance": c.min().item(),
            "collision_rate": (c < 0.05).float().mean().item(),
            "n_scenarios": len(mine),
            "seconds": round(time.time() - t0, 2),
        }
