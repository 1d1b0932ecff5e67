max_epochs = 100000
iters_per_epoch = 20
optimizer = dict(lr=0.01, momentum=0.9)
log_hooks = [
    dict(type="TextHook", interval=10),
    dict(type="TrackerHook", interval=10, project="mmdet-yolox", with_images=True),
]
