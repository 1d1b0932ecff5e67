import logging


def get_logger(rank):
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING,
                        format="%(asctime)s | %(levelname)s | %(name)s | %(message)s")
    return logging.getLogger("train_encoder")
