import threading

import torch


class DataLoadingThread(threading.Thread):
    """Fetches the next batch while the current one is being trained on."""

    def __init__(self, device, dataloader_iter):
        super().__init__(name="data_loading", daemon=True)
        self._device = device
        self._iter = dataloader_iter
        self._stop = False
        self._buffer_empty = threading.Event()
        self._buffer_filled = threading.Event()
        self._buffer_empty.set()
        self._batch = None

    def run(self):
        while not self._stop:
            self._buffer_empty.wait()
            try:
                batch = next(self._iter)
            except StopIteration:
                self._stop = True
                batch = None
            if batch is not None:
                batch = {k: v.to(self._device, non_blocking=True) for k, v in batch.items()}
            self._batch = batch
            self._buffer_empty.clear()
            self._buffer_filled.set()

    def get_next_batch(self):
        self._buffer_filled.wait()
        batch, self._batch = self._batch, None
        if batch is not None:
            self._buffer_filled.clear()
            self._buffer_empty.set()
        return batch


class TrainPipeline:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.loader = None
        self.loss_fn = torch.nn.BCEWithLogitsLoss()

    def progress(self, dataloader_iter):
        if self.loader is None:
            self.loader = DataLoadingThread(self.device, dataloader_iter)
            self.loader.start()
        batch = self.loader.get_next_batch()
        if batch is None:
            raise StopIteration
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_fn(self.model(batch["dense"], batch["sparse"]), batch["label"])
        loss.backward()
        self.optimizer.step()
        return loss.detach()
