/* Epilogues that normalize in one pass: the bits of the operations one by one. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include "compile/support.h"
#include "support/memory.h"
#include <mixtape/convolution.h>
#include <mixtape/random.h>

typedef enum product { MATMUL, CONV, DEPTHWISE, PRODUCTS } product;
typedef enum activation { NO_ACTIVATION, RELU, RELU6, ACTIVATIONS } activation;

typedef struct layer {
  product product;
  mix_dtype dtype;
  activation activation;
  bool adds, added_first; /* another value is added, as the first operand */
  mix_variable *kernel, *mean, *scale, *offset;
} layer;

static mix_list *normalized(void *context, mix_list *arguments) {
  const layer *l = context;
  mix_tensor *x = mix_list_get(arguments, 0), *kernel = mix_cast(mix_variable_value(l->kernel), l->dtype);
  mix_tensor *y = l->product == MATMUL ? mix_matmul(x, kernel, false, false)
                  : l->product == CONV ? mix_conv(x, kernel, .padding = "same")
                                       : mix_depthwise_conv(x, kernel, .padding = "same");
  y = mix_subtract(mix_cast(y, MIX_FLOAT32), mix_variable_value(l->mean));
  y = mix_add(mix_multiply(y, mix_variable_value(l->scale)), mix_variable_value(l->offset));
  y = mix_cast(y, l->dtype);
  mix_tensor *added = mix_list_get(arguments, 1);
  if (l->adds) y = l->added_first ? mix_add(added, y) : mix_add(y, added);
  if (l->activation == RELU) y = mix_relu(y);
  if (l->activation == RELU6) y = mix_relu6(y);
  return mix_list_of(y);
}

static mix_tensor *numbers(uint64_t seed, mix_shape shape) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(seed), shape, MIX_FLOAT32);
  x = mix_multiply(mix_subtract(x, scalar(0.5)), scalar(8));
  mix_evaluate(1, &x);
  return x;
}

/* Numbers of which some are infinite, NaN or zero. */
static mix_tensor *special_numbers(uint64_t seed, mix_shape shape) {
  mix_tensor *x = numbers(seed, shape);
  float *data = bytes_of_memory(mix_tensor_value(x)->memory);
  const float special[] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 6};
  for (int i = 0; i < COUNT(special); i++) data[i * 5] = special[i];
  return x;
}

static mix_tensor *rounded(mix_tensor *x, mix_dtype dtype) {
  x = mix_cast(x, dtype);
  mix_evaluate(1, &x);
  return x;
}

static bool same_number(const void *x, const void *y, mix_dtype dtype) {
  if (dtype == MIX_FLOAT32) return !memcmp(x, y, sizeof(float)) || (isnan(*(float *)x) && isnan(*(float *)y));
  const uint16_t a = *(const uint16_t *)x, b = *(const uint16_t *)y,
                 infinite = dtype == MIX_FLOAT16 ? 0x7c00 : 0x7f80;
  return a == b || ((a & 0x7fff) > infinite && (b & 0x7fff) > infinite);
}

static layer new_layer(product product, int64_t in, int64_t out) {
  const mix_shape kernels[] = {MIX_SHAPE(in, out), MIX_SHAPE(3, 3, in, out), MIX_SHAPE(3, 3, in, 1)};
  const mix_shape channels = MIX_SHAPE(product == DEPTHWISE ? in : out);
  return (layer){.product = product,
                 .kernel = variable("kernel", numbers(1, kernels[product])),
                 .mean = variable("mean", numbers(2, channels)),
                 .scale = variable("scale", numbers(3, channels)),
                 .offset = variable("offset", numbers(4, channels))};
}

static void check(const layer *l, mix_list *arguments, const char *what, int channels) {
  mix_tensor *results[2];
  for (int apart = 0; apart < 2; apart++) {
    if (apart) setenv("MIXTAPE_DISABLE_PASSES", "fuse,fuse_epilogues", 1);
    mix_function *function = mix_function_new(normalized, (void *)l);
    results[apart] = mix_list_get(mix_function_call(function, arguments), 0);
    no_error();
    unsetenv("MIXTAPE_DISABLE_PASSES");
  }
  const mix_value *a = mix_tensor_value(results[0]), *b = mix_tensor_value(results[1]);
  const size_t size = mix_dtype_size(l->dtype), count = mix_memory_bytes(a->memory) / size;
  const char *x = bytes_of_memory(a->memory), *y = bytes_of_memory(b->memory);
  for (size_t i = 0; i < count; i++)
    if (!same_number(x + i * size, y + i * size, l->dtype))
      fail_msg("%s of %s, %d channels, activation %d, adds %d: element %zu is another by itself", what,
               mix_dtype_name(l->dtype), channels, l->activation, l->adds, i);
}

/* Channels that fill two vectors of every set, one, or parts of one. */
static void check_layers(product product, mix_dtype dtype, int channels) {
  const char *names[] = {"matmul", "conv", "depthwise_conv"};
  for (int activation = 0; activation < ACTIVATIONS; activation++)
    for (int adds = 0; adds < 3; adds++)
      MIX_SCOPE {
        const int64_t out = channels, in = product == DEPTHWISE ? out : 9;
        layer l = new_layer(product, in, out);
        l.dtype = dtype, l.activation = activation, l.adds = adds > 0, l.added_first = adds > 1;
        const mix_shape x = product == MATMUL ? MIX_SHAPE(37, in) : MIX_SHAPE(2, 7, 6, in),
                        y = product == MATMUL ? MIX_SHAPE(37, out) : MIX_SHAPE(2, 7, 6, out);
        mix_set_threads(1 + channels % 2);
        check(&l, mix_list_of(rounded(special_numbers(5, x), dtype), rounded(special_numbers(6, y), dtype)),
              names[product], channels);
      }
}

static void the_bits_of_single_operations(void **state) {
  (void)state;
  const int channels[] = {1, 5, 16, 24, 64, 77, 200};
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  for (int product = 0; product < PRODUCTS; product++)
    for (int d = 0; d < COUNT(dtypes); d++)
      for (int c = 0; c < COUNT(channels); c++) check_layers(product, dtypes[d], channels[c]);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_bits_of_single_operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
