/* Residual networks. The numbers of normalization and the initial weights are those of the official models.
 */
#include "cli/models/models.h"

enum { BLOCK = 40, NAME = 64 };

static mix_tensor *convolve(mix_tensor *x, int64_t filters, int64_t kernel, int64_t stride, const char *block,
                            const char *part) {
  char name[NAME];
  snprintf(name, sizeof name, "%s_%s_conv", block, part);
  return mix_call(mix_conv2d(filters, kernel, .strides = MIX_SHAPE(stride), .padding = "same",
                             .no_bias = true, .kernel_initializer = "he_normal", .name = name),
                  x);
}

static mix_tensor *normalize(mix_tensor *x, const char *block, const char *part) {
  char name[NAME];
  snprintf(name, sizeof name, "%s_%s_bn", block, part);
  return mix_call(mix_batch_normalization(.momentum = 0.9, .epsilon = 1e-5, .name = name), x);
}

static mix_tensor *rectify(mix_tensor *x, const char *block, const char *part) {
  char name[NAME];
  snprintf(name, sizeof name, "%s_%s", block, part);
  return mix_call(mix_activation("relu", .name = name), x);
}

/* relu(x + shortcut) */
static mix_tensor *join(mix_tensor *shortcut, mix_tensor *x, const char *block) {
  char name[NAME];
  snprintf(name, sizeof name, "%s_add", block);
  return rectify(mix_call(mix_add_layer(.name = name), mix_list_of(shortcut, x)), block, "out");
}

/* 1x1, 3x3, 1x1 to four times the filters. */
static mix_tensor *bottleneck(mix_tensor *x, int64_t filters, int64_t stride, bool first, const char *block) {
  mix_tensor *shortcut = x;
  if (first) shortcut = normalize(convolve(x, 4 * filters, 1, stride, block, "0"), block, "0");
  x = rectify(normalize(convolve(x, filters, 1, 1, block, "1"), block, "1"), block, "1_relu");
  x = rectify(normalize(convolve(x, filters, 3, stride, block, "2"), block, "2"), block, "2_relu");
  return join(shortcut, normalize(convolve(x, 4 * filters, 1, 1, block, "3"), block, "3"), block);
}

mix_model *cli_resnet50(int64_t image_size, int64_t classes) {
  static const int blocks[] = {3, 4, 6, 3};
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(image_size, image_size, 3));
  mix_tensor *x = mix_call(mix_zero_padding2d(.padding = MIX_BORDERS(3), .name = "conv1_pad"), inputs);
  x = mix_call(mix_conv2d(64, 7, .strides = MIX_SHAPE(2), .no_bias = true, .kernel_initializer = "he_normal",
                          .name = "conv1_conv"),
               x);
  x = mix_call(mix_batch_normalization(.momentum = 0.9, .epsilon = 1e-5, .name = "conv1_bn"), x);
  x = mix_call(mix_activation("relu", .name = "conv1_relu"), x);
  x = mix_call(mix_zero_padding2d(.padding = MIX_BORDERS(1), .name = "pool1_pad"), x);
  x = mix_call(mix_max_pooling2d(.pool_size = MIX_SHAPE(3), .strides = MIX_SHAPE(2), .name = "pool1_pool"),
               x);
  for (int stage = 0; stage < 4; stage++)
    for (int i = 0; i < blocks[stage]; i++) {
      char block[BLOCK];
      snprintf(block, sizeof block, "conv%d_block%d", stage + 2, i + 1);
      x = bottleneck(x, (int64_t)64 << stage, stage && !i ? 2 : 1, !i, block);
    }
  return cli_end_classifier(inputs, x, classes, "avg_pool", "resnet50");
}

/* Two 3x3. */
static mix_tensor *basic_block(mix_tensor *x, int64_t filters, int64_t stride, const char *block) {
  mix_tensor *shortcut = x;
  if (stride > 1) shortcut = normalize(convolve(x, filters, 1, stride, block, "0"), block, "0");
  x = rectify(normalize(convolve(x, filters, 3, stride, block, "1"), block, "1"), block, "1_relu");
  return join(shortcut, normalize(convolve(x, filters, 3, 1, block, "2"), block, "2"), block);
}

mix_model *cli_resnet56(int64_t image_size, int64_t classes) {
  enum { BLOCKS = 9 };
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(image_size, image_size, 3));
  mix_tensor *x = mix_call(mix_conv2d(16, 3, .padding = "same", .no_bias = true,
                                      .kernel_initializer = "he_normal", .name = "conv1_conv"),
                           inputs);
  x = mix_call(mix_batch_normalization(.momentum = 0.9, .epsilon = 1e-5, .name = "conv1_bn"), x);
  x = mix_call(mix_activation("relu", .name = "conv1_relu"), x);
  for (int stage = 0; stage < 3; stage++)
    for (int i = 0; i < BLOCKS; i++) {
      char block[BLOCK];
      snprintf(block, sizeof block, "conv%d_block%d", stage + 2, i + 1);
      x = basic_block(x, (int64_t)16 << stage, stage && !i ? 2 : 1, block);
    }
  return cli_end_classifier(inputs, x, classes, "avg_pool", "resnet56");
}
