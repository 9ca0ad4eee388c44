/* The models whose weights test_generic_digests.c records, small ones of the examples' kinds, with data from
 * a linear congruence: integers, which every architecture has alike. */
#ifndef TESTS_TRAIN_DIGEST_MODELS_H
#define TESTS_TRAIN_DIGEST_MODELS_H

#include "model/support.h"

/* 20 steps of BATCH rows: five an epoch. */
enum { BATCH = 32, SMALL_BATCH = 8, EPOCHS = 4, STEPS_AN_EPOCH = 5 };
enum { PIXELS = 784, UNITS = 32, CLASSES = 10 };
enum { SIDE = 8, CHANNELS = 3, FILTERS = 8 };
enum { SYMBOLS = 11, LENGTH = 8, MEMORY = 16, WIDTH = 32, HEADS = 4 };

typedef struct trial {
  mix_model *model;
  mix_list *inputs;
  mix_tensor *labels;
  int64_t batch;
} trial;

static inline int next_of(uint32_t *noise, int count) {
  *noise = *noise * 1664525u + 1013904223u;
  return (int)((*noise >> 16) % (uint32_t)count);
}

static inline mix_tensor *integers(uint32_t seed, mix_shape shape, int first, int count) {
  const int64_t size = mix_shape_size(shape);
  int64_t *values = malloc(sizeof *values * (size_t)size);
  assert_non_null(values);
  for (int64_t i = 0; i < size; i++) values[i] = first + next_of(&seed, count);
  mix_tensor *made = mix_tensor_from(values, MIX_INT64, shape);
  free(values);
  return made;
}

/* From 0 to 1; class c is bright where the number of the pixel % CLASSES is c. */
static inline mix_tensor *images(mix_shape shape) {
  const int64_t rows = shape.dims[0], pixels = mix_shape_size(shape) / rows;
  float *values = malloc(sizeof *values * (size_t)(rows * pixels));
  assert_non_null(values);
  uint32_t noise = 1;
  for (int64_t i = 0; i < rows * pixels; i++)
    values[i] =
        (float)(next_of(&noise, 128) + (i % pixels % CLASSES == i / pixels % CLASSES ? 128 : 0)) / 255;
  mix_tensor *made = mix_tensor_from(values, F32, shape);
  free(values);
  return made;
}

static inline mix_tensor *classes_of_rows(int64_t rows) {
  int64_t *classes = malloc(sizeof *classes * (size_t)rows);
  assert_non_null(classes);
  for (int64_t i = 0; i < rows; i++) classes[i] = i % CLASSES;
  mix_tensor *made = mix_tensor_from(classes, MIX_INT64, MIX_SHAPE(rows));
  free(classes);
  return made;
}

static inline trial guide_trial(void) {
  enum { ROWS = BATCH * STEPS_AN_EPOCH };
  mix_model *model = guide_model(PIXELS, UNITS);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop());
  return (trial){model, mix_list_of(images(MIX_SHAPE(ROWS, PIXELS))), classes_of_rows(ROWS), BATCH};
}

/* Layers draw their seeds where they are made: calls that make layers are statements of their own, because C
 * leaves the order of arguments to the compiler. */

/* ---- a residual network ---- */

static inline mix_tensor *convolved(mix_tensor *x, int64_t filters, int64_t kernel, int64_t stride) {
  x = mix_call(mix_conv2d(filters, kernel, .strides = MIX_SHAPE(stride), .padding = "same", .no_bias = true,
                          .kernel_initializer = "he_normal"),
               x);
  return mix_call(mix_batch_normalization(.momentum = 0.9), x);
}
static inline mix_tensor *relu(mix_tensor *x) { return mix_call(mix_activation("relu"), x); }
static inline mix_tensor *sum(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static inline mix_tensor *residual(mix_tensor *x, int64_t filters, int64_t stride) {
  mix_tensor *shortcut = stride > 1 ? convolved(x, filters, 1, stride) : x;
  x = relu(convolved(x, filters, 3, stride));
  x = convolved(x, filters, 3, 1);
  return relu(sum(shortcut, x));
}
static inline mix_model *end_of(mix_tensor *inputs, mix_tensor *x, int classes) {
  x = mix_call(mix_dense(classes, .name = "logits"), x);
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

static inline void compile_by_adam(mix_model *model) {
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam());
}

static inline trial resnet_trial(void) {
  enum { ROWS = SMALL_BATCH * STEPS_AN_EPOCH };
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(SIDE, SIDE, CHANNELS));
  mix_tensor *x = relu(convolved(inputs, FILTERS, 3, 1));
  x = mix_call(mix_max_pooling2d(.pool_size = MIX_SHAPE(2)), x);
  x = residual(x, FILTERS, 1);
  x = residual(x, 2 * FILTERS, 2);
  x = mix_call(mix_global_average_pooling2d(.name = "mean"), x);
  mix_model *model = end_of(inputs, x, CLASSES);
  compile_by_adam(model);
  return (trial){model, mix_list_of(images(MIX_SHAPE(ROWS, SIDE, SIDE, CHANNELS))), classes_of_rows(ROWS),
                 SMALL_BATCH};
}

/* ---- a recurrent network: sequences with padding, which is masked ---- */

static inline trial lstm_trial(void) {
  enum { ROWS = SMALL_BATCH * STEPS_AN_EPOCH };
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH), .dtype = "int64");
  mix_tensor *x = mix_call(mix_embedding(SYMBOLS, MEMORY, .mask_zero = true), inputs);
  x = mix_call(mix_lstm(MEMORY), x);
  mix_model *model = end_of(inputs, x, CLASSES);
  compile_by_adam(model);
  return (trial){model, mix_list_of(integers(3, MIX_SHAPE(ROWS, LENGTH), 0, SYMBOLS)), classes_of_rows(ROWS),
                 SMALL_BATCH};
}

/* ---- a Transformer: encoder and decoder, one block each ---- */

/* x + sines and cosines of the positions. */
static inline mix_list *positions_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0), *position = mix_range(0, LENGTH, 1, F32),
             *wave = mix_range(0, WIDTH / 2., 1, F32);
  mix_tensor *frequency = mix_exp(mix_multiply(wave, mix_scalar_like(wave, -0.6)));
  mix_tensor *angle = mix_multiply(mix_expand_dims(position, 1), frequency);
  mix_tensor *signal = mix_concat(2, (mix_tensor *[]){mix_sin(angle), mix_cos(angle)}, 1);
  return mix_list_of(mix_add(x, mix_cast(signal, mix_tensor_dtype(x))));
}
static const mix_layer_class positions = {
    .size = sizeof(mix_layer_class), .name = "Positions", .call = positions_call, .supports_masking = true};

static inline mix_tensor *normalized(mix_tensor *x) {
  return mix_call(mix_layer_normalization(.epsilon = 1e-6), x);
}
static inline mix_tensor *attend(mix_tensor *x, mix_tensor *memory, bool causal) {
  mix_tensor *query = normalized(x);
  return sum(x, mix_call(mix_multi_head_attention(HEADS, WIDTH / HEADS), query,
                         .arguments = mix_list_of(memory ? memory : query), .use_causal_mask = causal));
}
static inline mix_tensor *feed_forward(mix_tensor *x) {
  mix_tensor *y = normalized(x);
  y = mix_call(mix_dense(2 * WIDTH, .activation = "gelu"), y);
  y = mix_call(mix_dropout(0.1), y);
  y = mix_call(mix_dense(WIDTH), y);
  return sum(x, y);
}
static inline mix_tensor *embedded(mix_tensor *tokens) {
  mix_tensor *x = mix_call(mix_embedding(SYMBOLS, WIDTH, .mask_zero = true), tokens);
  return mix_call(mix_layer_new(&positions), x);
}

static inline trial transformer_trial(void) {
  enum { ROWS = SMALL_BATCH * STEPS_AN_EPOCH };
  mix_tensor *source = mix_input(.shape = MIX_SHAPE(LENGTH), .dtype = "int64", .name = "source"),
             *words = mix_input(.shape = MIX_SHAPE(LENGTH), .dtype = "int64", .name = "words");
  mix_tensor *memory = attend(embedded(source), NULL, false);
  memory = normalized(feed_forward(memory));
  mix_tensor *x = attend(embedded(words), NULL, true);
  x = normalized(feed_forward(attend(x, memory, false)));
  x = mix_call(mix_dense(SYMBOLS, .name = "logits"), x);
  mix_model *model =
      mix_model_new(mix_list_of(source, words), mix_call(mix_activation("softmax", .dtype = "float32"), x));
  compile_by_adam(model);
  mix_tensor *tokens = integers(5, MIX_SHAPE(ROWS, LENGTH), 0, SYMBOLS);
  mix_tensor *before = integers(9, MIX_SHAPE(ROWS, LENGTH), 1, SYMBOLS - 1);
  return (trial){model, mix_list_of(tokens, before), tokens, SMALL_BATCH};
}

#endif
