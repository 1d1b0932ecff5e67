"""The words that a job uses for its own things, drawn by its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping

WORDS: Mapping[str, tuple[str, ...]] = {
    # what a loop works with
    "rank": ("rank", "global_rank", "my_rank", "process_index"),
    "world": ("world_size", "nprocs", "num_ranks"),
    "step": ("step", "global_step", "iteration", "it"),
    "epoch": ("epoch", "ep", "cycle"),
    "model": ("model", "net", "network", "module"),
    "loader": ("loader", "train_loader", "batches", "train_dl"),
    "valid": ("val_loader", "eval_loader", "dev_dl", "holdout"),
    "opt": ("optimizer", "opt", "optim"),
    "loss": ("loss", "train_loss", "objective"),
    "x": ("inputs", "x", "features", "tokens"),
    "y": ("targets", "y", "labels", "gold"),
    "args": ("args", "cfg", "opts", "conf"),
    # functions and classes
    "main": ("main", "run", "entry", "fit_main"),
    "train": ("train", "fit", "train_loop", "optimize"),
    "evaluate": ("evaluate", "validate", "run_eval", "score_dev"),
    "save": ("save_checkpoint", "checkpoint", "write_snapshot", "dump_state"),
    "record": ("record", "log_step", "write_history", "track"),
    "reduce": ("reduce_metrics", "mean_over_ranks", "sync_metrics", "average"),
    "wrap": ("wrap", "prepare_model", "parallelize", "build_parallel"),
    "setup": ("setup", "init_distributed", "setup_dist", "start_group"),
    "hook": ("activation_hook", "norm_hook", "probe_output", "collect_stats"),
    "seen": ("norms", "activations", "outputs_seen", "magnitudes"),
    "Net": ("TinyNet", "Encoder", "Regressor", "Backbone", "Tower"),
    "Block": ("Block", "FeedForward", "Layer", "Residual"),
    "Dataset": ("ShardDataset", "Records", "Corpus", "EventData", "ClickLog"),
    "Runner": ("Trainer", "Runner", "Session", "Experiment"),
    "Callback": ("HistoryCallback", "Meter", "RunLog", "Tracker"),
    "collate": ("collate", "stack_rows", "to_batch", "pack_rows"),
    "make_loader": ("make_loader", "get_loader", "build_loader", "loader_for"),
    "worker": ("worker", "run_rank", "launch_rank", "child_main"),
    # the data set's own
    "index": ("index", "idx", "i", "position"),
    "items": ("rows", "samples", "records", "data"),
    "served": ("served", "reads", "num_read", "count"),
    "stats": ("STATS", "COUNTS", "COUNTERS", "USAGE"),
    "indices": ("indices", "own", "picked", "subset"),
    # what a mechanism brings along
    "sync": ("sync_state", "share_state", "exchange_info", "agree", "publish"),
    "prepare": ("prepare_cache", "warm_cache", "load_table", "fetch_index", "open_store"),
    "clean": ("normalize", "clean_text", "parse_entry", "canonical", "tidy"),
    "guard": ("CACHE_LOCK", "TABLE_LOCK", "IO_LOCK", "WRITE_LOCK"),
    "second": ("STATS_LOCK", "INDEX_LOCK", "FLUSH_LOCK"),
    "pipe": ("sink", "encoder", "writer", "exporter"),
    "queue": ("inbox", "results", "pending", "jobs"),
    "thread": ("flusher", "refresher", "monitor", "background"),
    "address": ("SERVICE", "ENDPOINT", "REGISTRY", "TRACKER"),
    "artifact": ("vocab", "index", "stats", "manifest", "table"),
    "extra": ("extras", "plugins", "tokens_ext", "augment", "scoring"),
    "aside": ("prefetch", "sync_cache", "export", "mirror", "collector"),
}
FILES: Mapping[str, tuple[str, ...]] = {
    "train_file": ("train", "main", "pretrain", "finetune", "sft", "run_training"),
    "data_file": ("data", "dataset", "corpus", "loaders", "input_pipeline"),
    "model_file": ("model", "nets", "layers", "architecture"),
    "history": ("history.csv", "metrics.jsonl", "progress.tsv", "loss.log", "scalars.txt"),
    "ckpt": ("checkpoints", "ckpt", "snapshots", "out"),
}
LOGGERS = ("print", "logging.info", 'logging.getLogger("run").info')


def words(rng: random.Random) -> dict[str, str]:
    """One word for each name; no two names get the same one."""
    chosen: dict[str, str] = {}
    for name, choices in (*WORDS.items(), *FILES.items()):
        free = [word for word in choices if word not in chosen.values()]
        chosen[name] = rng.choice(free)
    return {**chosen, "say": rng.choice(LOGGERS)}
