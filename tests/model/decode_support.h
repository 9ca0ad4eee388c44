/* Models of sequences for the tests of decoding: small Transformers, and feeding them in parts. */
#ifndef TESTS_MODEL_DECODE_SUPPORT_H
#define TESTS_MODEL_DECODE_SUPPORT_H

#include "model/support.h"

#include "support/expect.h"
#include "support/folder.h"

enum { VOCABULARY = 11, FEATURES = 8, WINDOW = 24 };

/* x (batch, positions, features) + a learned row for each position. */
static inline mix_status positions_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  mix_variable **rows = mix_layer_data(layer);
  *rows = mix_layer_add_weight(layer, "rows", .shape = MIX_SHAPE(WINDOW, shapes[0].dims[2]),
                               .initializer = "random_normal");
  return mix_error();
}
static inline mix_list *positions_call(mix_layer *layer, const mix_call_args *args) {
  mix_variable **rows = mix_layer_data(layer);
  mix_tensor *own = mix_gather(mix_variable_value(*rows), mix_call_positions(args), 0);
  return own ? mix_list_of(mix_add(mix_call_input(args, 0), own)) : NULL;
}
static const mix_layer_class positions_class = {.size = sizeof(mix_layer_class),
                                                .name = "Positions",
                                                .instance_size = sizeof(mix_variable *),
                                                .build = positions_build,
                                                .call = positions_call,
                                                .supports_masking = true,
                                                .decodes = true};

static inline mix_tensor *causal(mix_layer *attention, mix_tensor *x) {
  return mix_call(attention, x, .arguments = mix_list_of(x), .use_causal_mask = true);
}
static inline mix_tensor *sum_of(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}

/* Two blocks, the second with groups where the generation has them. */
static inline mix_model *transformer(const char *policy, int64_t length) {
  const bool groups = !strcmp(mix_semantics_name(mix_semantics_current()), "keras3");
  mix_set_global_policy(policy);
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(length), .dtype = "int32", .name = "tokens");
  mix_tensor *x =
      mix_call(mix_embedding(VOCABULARY, FEATURES, .embeddings_initializer = "random_normal"), tokens);
  x = mix_call(mix_layer_new(&positions_class), x);
  for (int block = 0; block < 2; block++) {
    mix_tensor *y = mix_call(mix_layer_normalization(.epsilon = 1e-5), x);
    mix_layer *attention = groups && block ? mix_grouped_query_attention(4, 4, 2, .sliding_window = 7)
                                           : mix_multi_head_attention(2, 4, .dropout = block ? 0.5 : 0);
    x = sum_of(x, causal(attention, y));
    y = mix_call(mix_dense(3 * FEATURES, "gelu"), mix_call(mix_layer_normalization(), x));
    x = sum_of(x, mix_call(mix_dropout(0.3), mix_call(mix_dense(FEATURES), y)));
  }
  x = mix_call(mix_dense(VOCABULARY), x);
  mix_model *model = mix_model_new(tokens, mix_call(mix_activation("softmax"), x));
  mix_set_global_policy("float32");
  return model;
}

/* (batch, count) tokens, none of them 0. */
static inline mix_tensor *some_tokens(int64_t batch, int64_t count) {
  int32_t tokens[256];
  assert_true(batch * count <= 256);
  for (int64_t i = 0; i < batch * count; i++)
    tokens[i] = (int32_t)(1 + (i * i + 3 * i + i / 5) % (VOCABULARY - 1));
  return mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(batch, count));
}
static inline mix_tensor *columns_of(mix_tensor *tokens, int64_t first, int64_t count) {
  return mix_slice(tokens, MIX_SHAPE(0, first), MIX_SHAPE(mix_tensor_shape(tokens).dims[0], count));
}

/* Feeds all tokens in parts of 1, 1, 3, 2, 1, 3, 2, ... and puts the logits together. */
static inline mix_tensor *decoded(mix_decode_state *state, mix_tensor *tokens) {
  static const int64_t parts[] = {1, 1, 3, 2};
  mix_tensor *all[64];
  const int64_t total = mix_tensor_shape(tokens).dims[1];
  int count = 0;
  for (int64_t fed = 0; fed < total; count++) {
    const int64_t part = parts[count ? count % 3 + 1 : 0], own = part < total - fed ? part : total - fed;
    all[count] = mix_decode(state, columns_of(tokens, fed, own));
    assert_no_error();
    fed += own;
  }
  assert_int_equal(mix_decode_position(state), total);
  return mix_concat(count, all, 1);
}

/* All numbers of a tensor, freed by the caller. */
static inline double *numbers_of(mix_tensor *tensor) {
  const int64_t count = mix_shape_size(mix_tensor_shape(tensor));
  double *numbers = malloc(sizeof *numbers * (size_t)count);
  assert_int_equal(mix_tensor_read(tensor, MIX_FLOAT64, numbers, count), MIX_OK);
  return numbers;
}
static inline void assert_all_near(mix_tensor *got, mix_tensor *expected, double bound) {
  assert_no_error();
  const int64_t count = mix_shape_size(mix_tensor_shape(expected));
  assert_int_equal(mix_shape_size(mix_tensor_shape(got)), count);
  double *a = numbers_of(got), *b = numbers_of(expected);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(a[i] - b[i]) <= bound))
      fail_msg("element %lld is %.17g, expected %.17g within %g", (long long)i, a[i], b[i], bound);
  free(a);
  free(b);
}

#endif
