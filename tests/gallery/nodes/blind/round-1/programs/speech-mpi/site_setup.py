from pathlib import Path


def before(rig):
    """The feature cache was made on node1; the copy to node2 was never done."""
    code = "import numpy as np, pathlib; p = pathlib.Path('/scratch/fbank'); p.mkdir(exist_ok=True); [np.save(p / f'{i:05d}.npy', np.random.rand(98, 80).astype('float32')) for i in range(400)]"
    done = rig.call(rig.host("node1"), f'python -c "{code}"')
    assert done.returncode == 0, done.stderr
