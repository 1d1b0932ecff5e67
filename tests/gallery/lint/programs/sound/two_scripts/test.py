from rows import test_loader

for _batch in test_loader([]):
    pass
