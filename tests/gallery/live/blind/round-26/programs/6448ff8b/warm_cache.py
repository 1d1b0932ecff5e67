import sys

from feature_cache import load_shard

for name in sys.argv[1:]:
    load_shard(int(name))
