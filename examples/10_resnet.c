/* A small residual network on colour images, in mixed precision: CIFAR-10 where it is found, else the
 * built-in digits in random colours.
 *
 *   10_resnet [cifar10|digits [POLICY [EPOCHS [SEED [STATE]]]]]
 *
 * The policy is mixed_float16 if none is given; float32 trains the same network without mixed precision.
 * STATE is how the optimizer's slots are kept: float32, bfloat16, bfloat16-stochastic or bfloat16-kahan. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits (rows, 28, 28) from 0 to 1, in a light colour on a dark one. */
static mix_tensor *colour(mix_tensor *digits, mix_generator *generator) {
  const int64_t rows = mix_tensor_shape(digits).dims[0];
  mix_tensor *ink = mix_reshape(digits, MIX_SHAPE(rows, 28, 28, 1));
  mix_tensor *paper = mix_subtract(mix_scalar_like(ink, 1), ink);
  mix_tensor *dark = mix_random_uniform(generator, MIX_SHAPE(rows, 1, 1, 3), MIX_FLOAT32);
  mix_tensor *light = mix_random_uniform(generator, MIX_SHAPE(rows, 1, 1, 3), MIX_FLOAT32);
  dark = mix_multiply(dark, mix_scalar_like(dark, 0.4));
  light = mix_add(mix_multiply(light, mix_scalar_like(light, 0.4)), mix_scalar_like(light, 0.6));
  return mix_add(mix_multiply(ink, light), mix_multiply(paper, dark));
}

/* Damaged files of CIFAR-10 are an error; only where there are none, the digits are drawn. */
static mix_images load(const char *name) {
  setenv("MIXTAPE_OFFLINE", "1", 0); /* CIFAR-10 is 170 MB: it is looked for, and not downloaded */
  if (name && !strcmp(name, "cifar10")) return mix_cifar10_load();
  mix_images data = {.source = NULL};
  if (!name) data = mix_cifar10_load(.optional = true);
  if (data.source || mix_error()) return data;
  data = mix_digits_load(.train = 2000, .test = 500);
  mix_generator *generator = mix_generator_new(1);
  data.x_train = colour(data.x_train, generator);
  data.x_test = colour(data.x_test, generator);
  data.source = "the built-in digits in random colours";
  return data;
}

static mix_tensor *normalized(mix_tensor *x, int64_t filters, int64_t kernel, int64_t stride) {
  x = mix_call(mix_conv2d(filters, kernel, .strides = MIX_SHAPE(stride), .padding = "same", .no_bias = true,
                          .kernel_initializer = "he_normal"),
               x);
  return mix_call(mix_batch_normalization(.momentum = 0.9), x);
}

static mix_tensor *relu(mix_tensor *x) { return mix_call(mix_activation("relu"), x); }

/* relu(x + f(x)); where the size changes, x passes a 1x1 convolution. */
static mix_tensor *residual(mix_tensor *x, int64_t filters, int64_t stride) {
  mix_tensor *shortcut = stride > 1 ? normalized(x, filters, 1, stride) : x;
  mix_tensor *y = normalized(relu(normalized(x, filters, 3, stride)), filters, 3, 1);
  return relu(mix_call(mix_add_layer(.name = NULL), mix_list_of(shortcut, y)));
}

static mix_model *build(int64_t side) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(side, side, 3));
  mix_tensor *x = relu(normalized(inputs, 16, 3, 2));
  x = residual(residual(residual(x, 16, 1), 32, 2), 64, 2);
  x = mix_call(mix_global_average_pooling2d(.name = "mean"), x);
  x = mix_call(mix_dense(10, .name = "logits"), x);
  /* The softmax is computed in float32: its sum of exponentials is inaccurate in 16 bits. */
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : NULL;
  if (name && strcmp(name, "cifar10") && strcmp(name, "digits"))
    return fprintf(stderr, "10_resnet: no data set '%s'; there are cifar10 and digits\n", name), 2;
  const char *policy = argc > 2 ? argv[2] : "mixed_float16";
  const int epochs = argc > 3 ? atoi(argv[3]) : 5;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_images data = load(name);
  if (data.source) printf("Data: %s\n", data.source);
  mix_set_seed(argc > 4 ? (uint64_t)atoi(argv[4]) : 1);
  mix_set_global_policy(policy);
  mix_model *model = data.source ? build(mix_tensor_shape(data.x_train).dims[1]) : NULL;
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.state = argc > 5 ? argv[5] : NULL), .metrics = {"accuracy"});
  mix_model_fit(model, data.x_train, data.y_train, .batch_size = 50, .epochs = epochs, .verbose = 2);
  mix_logs *scores = mix_model_evaluate(model, data.x_test, data.y_test, .verbose = MIX_SILENT);
  if (scores) printf("%s: test accuracy %.4f\n", policy, mix_logs_get(scores, "accuracy"));
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
