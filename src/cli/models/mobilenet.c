/* MobileNetV2, with alpha 1. */
#include "cli/models/models.h"

enum { BLOCK = 32, NAME = 64 };

static const char *name_layer(const char *prefix, const char *part, char *name) {
  snprintf(name, NAME, "%s%s", prefix, part);
  return name;
}

static mix_tensor *normalize(mix_tensor *x, const char *prefix, const char *part) {
  char name[NAME];
  return mix_call(
      mix_batch_normalization(.momentum = 0.999, .epsilon = 1e-3, .name = name_layer(prefix, part, name)), x);
}

static mix_tensor *rectify(mix_tensor *x, const char *prefix, const char *part) {
  char name[NAME];
  return mix_call(mix_relu_layer(.max_value = 6, .name = name_layer(prefix, part, name)), x);
}

static mix_tensor *combine_channels(mix_tensor *x, int64_t filters, const char *prefix, const char *part) {
  char name[NAME];
  return mix_call(
      mix_conv2d(filters, 1, .padding = "same", .no_bias = true, .name = name_layer(prefix, part, name)), x);
}

/* With stride 2 an even side is padded at its end only. */
static mix_tensor *filter_channels(mix_tensor *x, int64_t stride, const char *prefix) {
  char name[NAME];
  if (stride == 2) {
    const int64_t odd = mix_tensor_shape(x).dims[1] % 2;
    x = mix_call(
        mix_zero_padding2d(.padding = MIX_BORDERS(odd, 1, odd, 1), .name = name_layer(prefix, "pad", name)),
        x);
  }
  return mix_call(mix_depthwise_conv2d(3, .strides = MIX_SHAPE(stride),
                                       .padding = stride == 1 ? "same" : "valid", .no_bias = true,
                                       .name = name_layer(prefix, "depthwise", name)),
                  x);
}

static mix_tensor *inverted_residual(mix_tensor *x, int64_t channels, int64_t filters, int64_t stride,
                                     int block) {
  char prefix[BLOCK] = "expanded_conv_", name[NAME];
  mix_tensor *before = x;
  if (block) {
    snprintf(prefix, sizeof prefix, "block_%d_", block);
    x = combine_channels(x, 6 * channels, prefix, "expand");
    x = rectify(normalize(x, prefix, "expand_BN"), prefix, "expand_relu");
  }
  x = filter_channels(x, stride, prefix);
  x = rectify(normalize(x, prefix, "depthwise_BN"), prefix, "depthwise_relu");
  x = normalize(combine_channels(x, filters, prefix, "project"), prefix, "project_BN");
  if (stride > 1 || channels != filters) return x;
  return mix_call(mix_add_layer(.name = name_layer(prefix, "add", name)), mix_list_of(before, x));
}

mix_model *cli_mobilenet_v2(int64_t image_size, int64_t classes) {
  static const struct {
    int64_t filters, stride;
    int count;
  } stages[] = {{16, 1, 1}, {24, 2, 2}, {32, 2, 3}, {64, 2, 4}, {96, 1, 3}, {160, 2, 3}, {320, 1, 1}};
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(image_size, image_size, 3));
  mix_tensor *x = mix_call(
      mix_conv2d(32, 3, .strides = MIX_SHAPE(2), .padding = "same", .no_bias = true, .name = "Conv1"),
      inputs);
  x = rectify(normalize(x, "bn_", "Conv1"), "Conv1_", "relu");
  int64_t channels = 32;
  int block = 0;
  for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
    for (int i = 0; i < stages[s].count; i++) {
      x = inverted_residual(x, channels, stages[s].filters, i ? 1 : stages[s].stride, block++);
      channels = stages[s].filters;
    }
  x = mix_call(mix_conv2d(1280, 1, .no_bias = true, .name = "Conv_1"), x);
  x = rectify(normalize(x, "Conv_1_", "bn"), "out_", "relu");
  char name[NAME];
  snprintf(name, sizeof name, "mobilenetv2_1.00_%lld", (long long)image_size);
  return cli_end_classifier(inputs, x, classes, NULL, name);
}
