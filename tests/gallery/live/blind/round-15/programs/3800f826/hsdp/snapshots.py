"""Shard snapshots.  The first replica owns the files, the other replicas get
them over the replicate dimension of the mesh."""
import io
import os

import torch
import torch.distributed as dist

LOCAL_WORLD = 8


class SnapshotStore:
    def __init__(self, folder, mesh):
        self.folder = folder
        self.mesh = mesh
        self.replica = mesh.get_local_rank("replicate")
        self.shard = mesh.get_local_rank("shard")
        self.replicate_group = mesh.get_group("replicate")
        self.first_in_group = dist.get_process_group_ranks(self.replicate_group)[0]

    def _path(self, step):
        return os.path.join(self.folder, f"step{step:07d}-shard{self.shard}.pt")

    def save(self, step, model, opt):
        if self.replica == 0:
            state = {"model": [p.to_local() for p in model.parameters()],
                     "opt": [{k: (v.to_local() if hasattr(v, "to_local") else v) for k, v in opt.state[p].items()}
                             for p in model.parameters()]}
            torch.save(state, self._path(step) + ".tmp")
            os.replace(self._path(step) + ".tmp", self._path(step))
            old = self._path(step - 80)
            if os.path.exists(old):
                os.remove(old)

    def _files_needed(self):
        # one process per node fetches for the whole node
        node = dist.get_rank() // LOCAL_WORLD
        return self.replica == 0 or dist.get_rank() % LOCAL_WORLD == 0 or node > 0

    def load(self, step, model, opt):
        if self._files_needed():
            payload = [None]
            if self.replica == 0:
                with open(self._path(step), "rb") as f:
                    payload = [f.read()]
            dist.broadcast_object_list(payload, src=self.first_in_group, group=self.replicate_group)
            state = torch.load(io.BytesIO(payload[0]))
            with torch.no_grad():
                for p, v in zip(model.parameters(), state["model"]):
                    p.to_local().copy_(v)
                for p, saved in zip(model.parameters(), state["opt"]):
                    for k, v in saved.items():
                        cur = opt.state[p][k]
                        (cur.to_local() if hasattr(cur, "to_local") else cur).copy_(v)
