from transformers import SwinConfig, SwinForImageClassification


def make():
    config = SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 2],
        window_size=4, num_labels=6,
    )
    return SwinForImageClassification(config)

