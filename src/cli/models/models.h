/* Models by name, for classes of images and for sequences of tokens. Each is built under the
 * global policy; if that computes in 16 bits, the last layer computes in float32. */
#pragma once

#include <mixtape/mixtape.h>

/* "float32" where the policy computes in 16 bits, else NULL: the dtype of the last layer. */
const char *cli_output_dtype(void);

/* Two hidden Dense layers, from (batch, width). */
mix_model *cli_guide(int64_t width, int64_t units, int64_t classes);
/* ResNet-50 v1.5: He et al., Deep residual learning for image recognition (2016), with the stride in the 3x3
 * convolution, as the official model that the mixed precision guides train. Convolutions have no bias: with
 * 1000 classes 25,557,032 trainable parameters; Keras's ResNet50, with its biases and the stride in the first
 * 1x1 convolution, has 25,583,592. Layers have the names of Keras's. */
mix_model *cli_resnet50(int64_t image_size, int64_t classes);
/* ResNet-56 for CIFAR of the same article: 6 n + 2 layers, n = 9; where the size changes, the shortcut is a
 * 1x1 convolution. */
mix_model *cli_resnet56(int64_t image_size, int64_t classes);
/* MobileNetV2 of Keras's applications, layer by layer (Sandler et al., 2018). */
mix_model *cli_mobilenet_v2(int64_t image_size, int64_t classes);

/* The end of each: the mean over the image, and a softmax of a Dense layer "predictions". `pool` names the
 * mean's layer; NULL: by its class. */
mix_model *cli_end_classifier(mix_tensor *inputs, mix_tensor *x, int64_t classes, const char *pool,
                              const char *name);

typedef struct cli_transformer_sizes {
  int64_t vocabulary; /* tokens; 0 fills up sequences */
  int64_t layers;     /* of the encoder, and of the decoder */
  int64_t units, heads, filter_size;
} cli_transformer_sizes;
/* The encoder-decoder of the official models, from tokens "inputs" (batch, positions) and "targets" to
 * probabilities of the targets' tokens, each from the inputs and the targets before it. `heads` divide
 * `units`, which are even. 61,362,176 parameters with 33,708 tokens, 6 layers of 512, 8 heads and 2,048. */
mix_model *cli_transformer(const cli_transformer_sizes *sizes);
/* Its own classes, so that files with them can be read. */
void cli_register_transformer_layers(void);
