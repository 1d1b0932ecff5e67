import json
import os
import time

PREPROCESS = {}


def register(name):
    def deco(fn):
        PREPROCESS[name] = fn
        return fn
    return deco


@register("alpaca")
def alpaca(row):
    return {"prompt": row["instruction"] + "\n", "response": row["output"]}


@register("dolly")
def dolly(row):
    return {"prompt": row["context"] + row["instruction"] + "\n", "response": row["response"]}


@register("oasst")
def oasst(row):
    return {"prompt": row["turns"][0], "response": row["turns"][1]}


@register("helpsteer")
def helpsteer(row):
    return {"prompt": row["prompt"], "response": row["response"]}


def raw_rows(name, n=300):
    for i in range(n):
        if name == "alpaca":
            yield {"instruction": f"add {i} and {i + 1}", "output": str(2 * i + 1)}
        elif name == "dolly":
            yield {"context": "", "instruction": f"name item {i}", "response": f"item-{i}"}
        elif name == "oasst":
            yield {"turns": [f"hello {i}", f"hi {i}"] if i != 211 else [f"hello {i}"]}
        else:
            yield {"prompt": f"rate {i}", "response": "good"}


def build_from_hf(name, folder):
    """Local rank 0 prepares the set, the others use its result."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.jsonl")
    signal_file = os.path.join(folder, f".node_0_local_rank0_data_prep_completed_{name}")
    if int(os.environ["LOCAL_RANK"]) == 0:
        fn = PREPROCESS[name]
        with open(path, "w") as f:
            for row in raw_rows(name):
                f.write(json.dumps(fn(row)) + "\n")
                time.sleep(0.005)
        open(signal_file, "w").close()
    else:
        while not os.path.exists(signal_file):
            time.sleep(0.3)
    with open(path) as f:
        return [json.loads(line) for line in f]
