from datasets import load_dataset
from device import pick


def main():
    dev = pick()
    ds = load_dataset("parquet", data_files="x.parquet", split="train")
    ds = ds.map(str.lower, num_proc=4)
    return ds, dev


main()
