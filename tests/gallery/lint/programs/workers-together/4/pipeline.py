from torch.utils.data import DataLoader


class Pipeline:
    def __init__(self, config, train_rows, eval_rows):
        self.train = DataLoader(train_rows, batch_size=4, num_workers=config["data"]["train_workers"])
        self.eval = DataLoader(eval_rows, batch_size=4, num_workers=config["data"]["eval_workers"])

    def fit(self, model):
        for step, batch in enumerate(self.train):
            model(batch)
            if step % 500 == 0:
                self.check(model)

    def check(self, model):
        for batch in self.eval:
            model(batch)
