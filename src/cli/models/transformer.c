/* The Transformer of the official models (Vaswani et al.: Attention is all you need; arXiv:1706.03762):
 * layers normalise their input and add to it, and the embeddings are the weights before the softmax too. */
#include "cli/models/models.h"
#include "ops/with_number.h"

#include <math.h>

enum { BLOCK = 32, PART = 32, NAME = BLOCK + PART + 1 };
#define DROPOUT 0.1 /* of embeddings, probabilities, hidden units and what is added, as in training there */

/* ---- tokens to rows of the embeddings, and rows to logits ---- */

typedef struct embeddings {
  int64_t vocabulary, units;
  mix_variable *weights;
} embeddings;

static mix_status embeddings_build(mix_layer *layer, int count, const mix_shape *shapes) {
  embeddings *e = mix_layer_data(layer);
  mix_initializer *normal =
      mix_initializer_new("random_normal", .stddev = 1 / sqrt((double)(e->units > 0 ? e->units : 1)));
  e->weights = mix_layer_add_weight(layer, "embeddings", .shape = MIX_SHAPE(e->vocabulary, e->units),
                                    .initializer_object = normal, .no_autocast = true);
  return mix_error();
}

/* Tokens are whole numbers, and become rows times sqrt(units). */
static mix_list *embeddings_call(mix_layer *layer, const mix_call_args *args) {
  const embeddings *e = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0), *weights = mix_variable_value(e->weights);
  const mix_dtype dtype = mix_layer_compute_dtype(layer);
  if (mix_dtype_is_floating(mix_tensor_dtype(x)))
    return mix_list_of(mix_matmul(mix_cast(x, dtype), mix_cast(weights, dtype), false, true));
  mix_tensor *rows = mix_cast(mix_gather(weights, x, 0), dtype);
  return mix_list_of(mix_times(rows, sqrt((double)e->units)));
}

/* Token 0 fills up sequences. */
static mix_tensor *embeddings_mask(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  if (mix_dtype_is_floating(mix_tensor_dtype(x))) return args->masks ? mix_list_get(args->masks, 0) : NULL;
  return mix_not_equal(x, mix_scalar_like(x, 0));
}

static mix_status embeddings_config(mix_layer *layer, mix_config *config) {
  const embeddings *e = mix_layer_data(layer);
  mix_config_integer(config, "vocab_size", e->vocabulary);
  return mix_config_integer(config, "embedding_width", e->units);
}
static mix_status embeddings_from_config(mix_layer *layer, mix_config *config) {
  embeddings *e = mix_layer_data(layer);
  e->vocabulary = mix_config_get_integer(config, "vocab_size", 0);
  e->units = mix_config_get_integer(config, "embedding_width", 0);
  return mix_error();
}

static const mix_layer_class embeddings_class = {.size = sizeof(mix_layer_class),
                                                 .name = "SharedEmbeddings",
                                                 .instance_size = sizeof(embeddings),
                                                 .build = embeddings_build,
                                                 .call = embeddings_call,
                                                 .no_autocast = true,
                                                 .compute_mask = embeddings_mask,
                                                 .get_config = embeddings_config,
                                                 .from_config = embeddings_from_config};

/* ---- positions ---- */

static bool has_known_positions(mix_tensor *x) {
  const mix_shape shape = mix_tensor_shape(x);
  return shape.rank == 3 && shape.dims[1] >= 0;
}

/* x (batch, positions, units) plus sines in the first half of the units and cosines in the second, of wave
 * lengths from 2 pi to 10,000 times that. */
static mix_list *positions_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  const mix_shape shape = mix_tensor_shape(x);
  const double waves = (double)(shape.rank == 3 ? shape.dims[2] / 2 : 0);
  if (!has_known_positions(x) || waves < 1) return mix_list_of(x);
  mix_tensor *wave = mix_range(0, waves, 1, MIX_FLOAT32),
             *position = mix_range(0, (double)shape.dims[1], 1, MIX_FLOAT32);
  const double step = waves > 1 ? log(10000) / (waves - 1) : 0;
  mix_tensor *frequency = mix_exp(mix_times(wave, -step));
  mix_tensor *angle = mix_multiply(mix_expand_dims(position, 1), frequency);
  mix_tensor *signal = mix_concat(2, (mix_tensor *[]){mix_sin(angle), mix_cos(angle)}, 1);
  return mix_list_of(mix_add(x, mix_cast(signal, mix_tensor_dtype(x))));
}

static const mix_layer_class positions_class = {.size = sizeof(mix_layer_class),
                                                .name = "SinePositions",
                                                .call = positions_call,
                                                .supports_masking = true};

/* Each position gets what was before it, the first one zeros. The mask stays: the decoder's result at a
 * position is the token that was there. */
static mix_list *shift_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  if (!has_known_positions(x)) return mix_list_of(x);
  mix_shape size = mix_tensor_shape(x);
  size.dims[0] = size.dims[2] = -1;
  x = mix_pad(x, MIX_SHAPE(0, 1, 0), MIX_SHAPE(0, 0, 0), 0);
  return mix_list_of(mix_slice(x, MIX_SHAPE(0, 0, 0), size));
}

static const mix_layer_class shift_class = {
    .size = sizeof(mix_layer_class), .name = "ShiftRight", .call = shift_call, .supports_masking = true};

void cli_register_transformer_layers(void) {
  mix_register_layer("mixtape", NULL, &embeddings_class);
  mix_register_layer("mixtape", NULL, &positions_class);
  mix_register_layer("mixtape", NULL, &shift_class);
}

/* ---- the model ---- */

/* "encoder_0_attention" */
static const char *name_of(const char *block, const char *part, char *name) {
  snprintf(name, NAME, "%s_%s", block, part);
  return name;
}

static mix_tensor *normalize(mix_tensor *x, const char *block, const char *part) {
  char name[NAME];
  return mix_call(
      mix_layer_normalization(.epsilon = 1e-6, .dtype = "float32", .name = name_of(block, part, name)), x);
}

static mix_tensor *drop(mix_tensor *x, const char *block, const char *part) {
  char name[NAME];
  return mix_call(mix_dropout(DROPOUT, .name = name_of(block, part, name)), x);
}

/* x + what a sublayer made of it. */
static mix_tensor *add(mix_tensor *x, mix_tensor *y, const char *block, const char *part) {
  char name[NAME], dropout[PART];
  snprintf(dropout, sizeof dropout, "%s_dropout", part);
  return mix_call(mix_add_layer(.name = name_of(block, part, name)), mix_list_of(x, drop(y, block, dropout)));
}

/* Over `memory`, or, causally or not, over the query itself. */
static mix_tensor *attend(const cli_transformer_sizes *s, mix_tensor *x, mix_tensor *memory, bool causal,
                          const char *block, const char *part) {
  char name[NAME], norm[PART], sum[PART];
  snprintf(norm, sizeof norm, "%s_norm", part);
  snprintf(sum, sizeof sum, "%s_add", part);
  const double limit = sqrt(3 / (double)s->units); /* glorot_uniform's of a kernel (units, units) */
  mix_tensor *query = normalize(x, block, norm);
  mix_layer *attention = mix_multi_head_attention(
      s->heads, s->units / s->heads, .dropout = DROPOUT, .no_bias = true,
      .kernel_initializer_object = mix_initializer_new("random_uniform", .minval = -limit, .maxval = limit),
      .name = name_of(block, part, name));
  mix_tensor *y = mix_call(attention, query, .arguments = mix_list_of(memory ? memory : query),
                           .use_causal_mask = causal);
  return add(x, y, block, sum);
}

static mix_tensor *feed_forward(const cli_transformer_sizes *s, mix_tensor *x, const char *block) {
  char name[NAME];
  mix_tensor *y = normalize(x, block, "ffn_norm");
  y = mix_call(mix_dense(s->filter_size, .activation = "relu", .name = name_of(block, "ffn_filter", name)),
               y);
  y = mix_call(mix_dense(s->units, .name = name_of(block, "ffn_output", name)),
               drop(y, block, "ffn_dropout"));
  return add(x, y, block, "ffn_add");
}

/* A block "encoder_0" of all; with a memory it is one of the decoder. */
static mix_tensor *stack(const cli_transformer_sizes *s, mix_tensor *x, mix_tensor *memory,
                         const char *which) {
  for (int64_t i = 0; i < s->layers; i++) {
    char block[BLOCK];
    snprintf(block, sizeof block, "%s_%lld", which, (long long)i);
    x = attend(s, x, NULL, memory, block, "self_attention");
    if (memory) x = attend(s, x, memory, false, block, "attention");
    x = feed_forward(s, x, block);
  }
  return normalize(x, which, "norm");
}

mix_model *cli_transformer(const cli_transformer_sizes *s) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32", .name = "inputs"),
             *targets = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32", .name = "targets");
  mix_layer *shared = mix_layer_new(&embeddings_class, .name = "embeddings");
  if (!shared) return NULL;
  *(embeddings *)mix_layer_data(shared) = (embeddings){.vocabulary = s->vocabulary, .units = s->units};
  mix_tensor *x =
      mix_call(mix_layer_new(&positions_class, .name = "encoder_positions"), mix_call(shared, inputs));
  mix_tensor *memory = stack(s, drop(x, "encoder", "dropout"), NULL, "encoder");
  x = mix_call(mix_layer_new(&shift_class, .name = "shift_right"), mix_call(shared, targets));
  x = mix_call(mix_layer_new(&positions_class, .name = "decoder_positions"), x);
  x = stack(s, drop(x, "decoder", "dropout"), memory, "decoder");
  x = mix_call(mix_activation("softmax", .dtype = "float32", .name = "predictions"), mix_call(shared, x));
  return mix_model_new(mix_list_of(inputs, targets), x, .name = "transformer");
}
