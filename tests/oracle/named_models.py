"""Prints the layers of Keras's applications, for tests/cli/test_named_models.c to compare ours with.

One line a layer: the model's name here, the layer's name, its class, its parameters. Convolutions of ResNet50
have no bias here, so theirs are left out. Run with Keras 3:

    python tests/oracle/named_models.py > tests/cli/named_models.txt
"""

import keras

MODELS = {"resnet50": keras.applications.ResNet50, "mobilenet_v2": keras.applications.MobileNetV2}

for name, build in MODELS.items():
    for layer in build(weights=None).layers[1:]:  # after the input
        count = layer.count_params()
        if name == "resnet50" and isinstance(layer, keras.layers.Conv2D):
            count -= layer.filters
        print(name, layer.name, type(layer).__name__, count)
