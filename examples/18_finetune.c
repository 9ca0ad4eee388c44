/* Fine-tuning in little memory: a small Transformer learns to say numbers, 4071 as "four thousand seventy
 * one", and is saved as a Keras file. Its weights are then stored as integers of 4 bits, and a small adapter
 * (LoRA) learns the old order, "four thousand one and seventy", in their place, under mixed_bfloat16.
 *
 *   18_finetune [DIRECTORY [EPOCHS]]
 *
 * leaves in the directory (default: the current one) base.keras; old.npz, the adapter; and old.keras, the
 * float model with the adapter merged into it, which Keras loads. */
#include <mixtape/mixtape.h>

#include "18_number_lines.h"
#include <math.h>
#include <stdlib.h>

enum { UNITS = 64, HEADS = 4, LAYERS = 2, RANK = 4 };

typedef struct paths {
  char base[512], adapter[512], merged[512];
} paths;

/* ---- the model: a line so far to the next word at each position; a convolution tells positions apart ----
 */

static mix_tensor *normalized(mix_tensor *x) { return mix_call(mix_layer_normalization(.epsilon = 1e-6), x); }
static mix_tensor *add(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static mix_tensor *attend(mix_tensor *x) {
  mix_tensor *query = normalized(x);
  mix_layer *attention = mix_multi_head_attention(HEADS, UNITS / HEADS);
  return add(x, mix_call(attention, query, .arguments = mix_list_of(query), .use_causal_mask = true));
}
static mix_tensor *feed_forward(mix_tensor *x) {
  mix_tensor *y = mix_call(mix_dense(4 * UNITS, .activation = "relu"), normalized(x));
  return add(x, mix_call(mix_dense(UNITS), y));
}
static mix_model *build(void) {
  mix_tensor *line = mix_input(.shape = MIX_SHAPE(LENGTH), .dtype = "int32", .name = "line");
  mix_tensor *x = mix_call(mix_embedding(TOKENS, UNITS), line);
  x = add(x, mix_call(mix_conv1d(UNITS, 3, .padding = "causal"), x));
  for (int i = 0; i < LAYERS; i++) x = feed_forward(attend(x));
  x = mix_call(mix_dense(TOKENS, .name = "logits"), normalized(x));
  return mix_model_new(line, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

/* ---- training and evaluation; the first TEST lines are kept from training ---- */

static void train(mix_model *model, const lines *data, double learning_rate, int epochs) {
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = learning_rate));
  const mix_shape shape = MIX_SHAPE(NUMBERS - TEST, LENGTH);
  mix_model_fit(model, mix_tensor_from(data->line[TEST], MIX_INT32, shape),
                mix_tensor_from(data->next[TEST], MIX_INT32, shape), .batch_size = 64, .epochs = epochs,
                .verbose = 2);
}

/* The share of the numbers whose words are all right. */
static double right(mix_model *model, const lines *data) {
  static float p[TEST][LENGTH][TOKENS];
  mix_tensor *line = mix_tensor_from(data->line, MIX_INT32, MIX_SHAPE(TEST, LENGTH));
  mix_tensor *probabilities = mix_list_get(mix_model_predict(model, line, .batch_size = TEST), 0);
  int count = 0;
  if (mix_tensor_read(probabilities, MIX_FLOAT32, p, TEST * LENGTH * TOKENS) != MIX_OK) return NAN;
  for (int i = 0; i < TEST; i++) count += all_right(p[i], data->next[i]);
  return count / (double)TEST;
}
static void show(const char *what, mix_model *model, const lines *modern, const lines *old) {
  MIX_SCOPE_HERE;
  const double of_modern = right(model, modern), of_old = right(model, old);
  if (!mix_error()) printf("%s: modern order %.3f, old order %.3f\n", what, of_modern, of_old);
}

/* ---- the parts ---- */

static void pretrain(const paths *at, const lines *modern, const lines *old, int epochs) {
  MIX_SCOPE_HERE;
  mix_model *model = build();
  train(model, modern, 2e-3, epochs);
  show("pretrained", model, modern, old);
  mix_model_save(model, at->base);
}

static mix_model *load_quantized(const paths *at) {
  mix_model *model = mix_model_load(at->base);
  mix_model_quantize(model, "int4", .filter = "embedding|query|key|value|output|dense|logits");
  return model;
}

/* Kernels of 4 bits do not train. What does, a and b in their place, biases and normalizations, is the
 * adapter. */
static void finetune(const paths *at, const lines *modern, const lines *old, int epochs) {
  MIX_SCOPE_HERE;
  mix_model *model = load_quantized(at);
  show("in 4 bits", model, modern, old);
  mix_model_enable_lora(model, RANK);
  train(model, old, 5e-3, epochs);
  show("fine-tuned", model, modern, old);
  mix_model_save_lora(model, at->adapter);
}

/* What a program does that was given the base and the adapter. */
static void use(const paths *at, const lines *modern, const lines *old) {
  MIX_SCOPE_HERE;
  mix_model *model = load_quantized(at);
  mix_model_load_lora(model, at->adapter);
  show("loaded again", model, modern, old);
}

/* The float kernels are nearly those of 4 bits that the adapter was trained on. */
static void merge(const paths *at, const lines *modern, const lines *old) {
  MIX_SCOPE_HERE;
  mix_model *model = mix_model_load(at->base);
  mix_model_load_lora(model, at->adapter);
  mix_model_merge_lora(model);
  show("merged into float weights", model, modern, old);
  mix_model_save(model, at->merged);
}

int main(int argc, char **argv) {
  static lines modern, old;
  static paths at;
  const char *directory = argc > 1 ? argv[1] : ".";
  const int epochs = argc > 2 ? atoi(argv[2]) : 3;
  snprintf(at.base, sizeof at.base, "%s/base.keras", directory);
  snprintf(at.adapter, sizeof at.adapter, "%s/old.npz", directory);
  snprintf(at.merged, sizeof at.merged, "%s/old.keras", directory);
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_semantics("keras3"); /* which has quantization and LoRA */
  mix_set_global_policy("mixed_bfloat16");
  make_lines(&modern, false), make_lines(&old, true);
  pretrain(&at, &modern, &old, epochs);
  finetune(&at, &modern, &old, epochs);
  use(&at, &modern, &old);
  merge(&at, &modern, &old);
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
