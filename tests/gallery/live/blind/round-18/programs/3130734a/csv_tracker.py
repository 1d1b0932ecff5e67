import csv
import os

from accelerate.tracking import GeneralTracker, on_main_process


class CSVTracker(GeneralTracker):
    name = "csv"
    requires_logging_directory = True
    main_process_only = True

    def __init__(self, run_name, logging_dir):
        super().__init__()
        self.path = os.path.join(logging_dir, f"{run_name}.csv")
        self.rows = []
        self.keys = set()

    @property
    def tracker(self):
        return self.rows

    @on_main_process
    def store_init_configuration(self, values):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".config", "w") as f:
            f.writelines(f"{k}: {v}\n" for k, v in values.items())

    @on_main_process
    def log(self, values, step=None, **kwargs):
        self.rows.append({"step": step, **values})
        self.save()

    def save(self):
        for row in self.rows:
            self.keys.update(row)
        with open(self.path, "w", newline="") as f:
            writer = csv.DictWriter(f, fieldnames=sorted(self.keys))
            writer.writeheader()
            writer.writerows(self.rows)
