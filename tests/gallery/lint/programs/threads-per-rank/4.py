import psutil
from torch import distributed, set_num_threads


class Setup:
    cores = psutil.cpu_count()

    def run(self):
        distributed.init_process_group("gloo")
        set_num_threads(self.cores)


Setup().run()
