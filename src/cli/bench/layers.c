/* Table layers: convolutions of image models, forward and backward, in each policy's compute dtype; then
 * layers of sequences and image models. */
#include "base/json.h"
#include "cli/bench/layer_pass.h"
#include <string.h>

enum { BATCH = 8 };

typedef struct layer {
  const char *name;
  int64_t size, channels, filters, cells, stride; /* of square images and kernels; filters 0: depthwise, */
  int64_t multiplier;                             /* filters of a channel */
} layer;

static const layer layers[] = {{"3x3, 64 to 64, 56x56", 56, 64, 64, 3, 1},
                               {"1x1, 256 to 64, 56x56", 56, 256, 64, 1, 1},
                               {"7x7 stride 2, 3 to 64, 224x224", 224, 3, 64, 7, 2},
                               {"3x3 stride 2, 128 to 256, 56x56", 56, 128, 256, 3, 2},
                               {"depthwise 3x3, 128, 28x28", 28, 128, 0, 3, 1, 1},
                               {"depthwise 3x3, 128 times 2, 28x28", 28, 128, 0, 3, 1, 2}};

static mix_tensor *forward(const layer *l, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0), *kernel = mix_list_get(arguments, 1);
  const mix_shape strides = MIX_SHAPE(l->stride);
  mix_tensor *y = l->filters ? mix_conv(x, kernel, .strides = strides, .padding = "same")
                             : mix_depthwise_conv(x, kernel, .strides = strides, .padding = "same");
  return mix_bias_add(y, mix_list_get(arguments, 2));
}

static mix_list *forward_body(void *context, mix_list *arguments) {
  mix_tensor *y = forward(context, arguments);
  return y ? mix_list_of(y) : NULL;
}

/* The gradients of x, kernel and bias. Nothing asks for that of images, which have three channels. */
static mix_list *backward_body(void *context, mix_list *arguments) {
  mix_tape *tape = mix_tape_begin();
  mix_list *sources = mix_list_new(0, NULL);
  for (int i = 0; i < 3; i++) {
    mix_tape_watch(tape, mix_list_get(arguments, i));
    if (i || ((const layer *)context)->channels > 3) mix_list_append(sources, mix_list_get(arguments, i));
  }
  mix_tensor *y = forward(context, arguments);
  mix_tape_end(tape);
  return y ? mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 3)), sources)
           : NULL;
}

/* Arguments: x, kernel, bias, the gradient of y. */
static bool prepare(const bench_layer_pass *pass, const char *policy, mix_dtype dtype,
                    bench_layer_call *call) {
  const layer *l = pass->context;
  const int64_t out = (l->size + l->stride - 1) / l->stride,
                y = l->filters ? l->filters : l->channels * l->multiplier;
  const mix_shape shapes[] = {
      MIX_SHAPE(pass->batch, l->size, l->size, l->channels),
      MIX_SHAPE(l->cells, l->cells, l->channels, l->filters ? l->filters : l->multiplier), MIX_SHAPE(y),
      MIX_SHAPE(pass->batch, out, out, y)};
  mix_generator *generator = mix_generator_new(1);
  *call = (bench_layer_call){mix_function_new(strcmp(pass->pass, "forward") ? backward_body : forward_body,
                                              (void *)l, .name = pass->pass),
                             mix_list_new(0, NULL)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (!bench_layer_argument(call, generator, shapes[i], dtype)) return false;
  return mix_error() == MIX_OK;
}

bool bench_layers(const bench_settings *settings) {
  static const char *const passes[] = {"forward", "backward"};
  json_t *results = json_array();
  mix_json_set(settings->json, "layers", results);
  if (settings->text)
    printf("\nlayers; ms: median, best, speed to float32\n%-34s %5s %-8s  %27s  %27s  %27s\n", "", "batch",
           "", "float32", "mixed_float16", "mixed_bfloat16");
  bool good = true;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    for (int p = 0; p < 2 && good; p++)
      MIX_SCOPE {
        good = bench_layer_time(settings,
                                &(const bench_layer_pass){.layer = layers[i].name,
                                                          .pass = passes[p],
                                                          .batch = settings->batch ? settings->batch : BATCH,
                                                          .context = &layers[i],
                                                          .prepare = prepare},
                                results);
      }
  return good && bench_sequence_layers(settings, results) && bench_image_models(settings, results);
}
