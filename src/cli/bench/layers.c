/* Table layers: convolutions of image models and attention, forward and backward, in each policy's compute
 * dtype. */
#include "cli/bench/bench.h"
#include "cli/bench/comparison.h"
#include <mixtape/convolution.h>
#include <stdio.h>

enum { DTYPES = BENCH_LAYER_POLICIES, BATCH = 8 };

typedef struct layer {
  const char *name;
  int64_t size, channels, filters, cells, stride; /* of square images and kernels; filters 0: depthwise */
} layer;

static const layer layers[] = {{"3x3, 64 to 64, 56x56", 56, 64, 64, 3, 1},
                               {"1x1, 256 to 64, 56x56", 56, 256, 64, 1, 1},
                               {"7x7 stride 2, 3 to 64, 224x224", 224, 3, 64, 7, 2},
                               {"3x3 stride 2, 128 to 256, 56x56", 56, 128, 256, 3, 2},
                               {"depthwise 3x3, 128, 28x28", 28, 128, 0, 3, 1}};

/* A layer in one dtype, forward or backward. */
typedef struct candidate {
  const layer *layer;
  mix_function *function;
  mix_list *arguments; /* x, kernel, bias, the gradient of y */
} candidate;

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

static bool prepare(candidate *x, const layer *l, int64_t batch, mix_dtype dtype, bool backward) {
  const int64_t out = (l->size + l->stride - 1) / l->stride, y = l->filters ? l->filters : l->channels;
  const mix_shape shapes[] = {MIX_SHAPE(batch, l->size, l->size, l->channels),
                              MIX_SHAPE(l->cells, l->cells, l->channels, l->filters ? l->filters : 1),
                              MIX_SHAPE(y), MIX_SHAPE(batch, out, out, y)};
  mix_generator *generator = mix_generator_new(1);
  *x = (candidate){.layer = l,
                   .function = mix_function_new(backward ? backward_body : forward_body, (void *)l,
                                                .name = backward ? "backward" : "forward"),
                   .arguments = mix_list_new(0, NULL)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !mix_error(); i++) {
    mix_tensor *numbers = mix_random_uniform(generator, shapes[i], MIX_FLOAT32);
    numbers = mix_cast(mix_subtract(numbers, mix_scalar_like(numbers, 0.5)), dtype);
    if (mix_evaluate(1, &numbers) == MIX_OK) mix_list_append(x->arguments, numbers);
  }
  return mix_error() == MIX_OK;
}

static bool run(void *context) {
  const candidate *x = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(x->function, x->arguments) != NULL; }
  return good;
}

static bool one_pass(const bench_settings *settings, const layer *l, bool backward, json_t *results) {
  static const mix_dtype dtypes[DTYPES] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  static bench_candidate runs[DTYPES];
  candidate candidates[DTYPES];
  const int64_t batch = settings->batch ? settings->batch : BATCH;
  for (int i = 0; i < DTYPES; i++) {
    if (!prepare(&candidates[i], l, batch, dtypes[i], backward)) return false;
    runs[i] = (bench_candidate){.run = run, .context = &candidates[i]};
  }
  return bench_layer_row(settings, &(bench_layer_pass){l->name, batch, backward}, runs, results);
}

bool bench_layers(const bench_settings *settings) {
  json_t *results = json_array();
  json_object_set_new(settings->json, "layers", results);
  if (settings->text)
    printf("\nlayers with a bias, batch %lld; ms: median, best, speed to float32\n%-44s  %27s  %27s  %27s\n",
           (long long)(settings->batch ? settings->batch : BATCH), "", "float32", "mixed_float16",
           "mixed_bfloat16");
  bool good = true;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    for (int backward = 0; backward < 2 && good; backward++)
      MIX_SCOPE { good = one_pass(settings, &layers[i], backward, results); }
  return good && bench_attention_layers(settings, results);
}
