from rows import train_loader

for _batch in train_loader([]):
    pass
