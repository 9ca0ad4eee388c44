/* What the attention layers share: masks, projections to heads, and attention over heads. */
#pragma once

#include "nn/layers/builtin.h"

/* Stands for scores where Keras 3 computes them in float32: 0.7 of its lowest number. */
#define MIX_MASKED_SCORE (-0.7 * 3.38953e38)

/* ---- masks (true: attends) ---- */

/* (queries, keys): a query attends to keys up to its own place. NULL without an error for unknown sizes,
 * which only symbolic calls have. */
mix_tensor *mix_causal_mask(int64_t queries, int64_t keys);
/* a and b; one of them may be NULL. */
mix_tensor *mix_both_masks(mix_tensor *a, mix_tensor *b);
/* The masks of query, value and key, the window (0: none) and the mask of the call; NULL: there is none.
 * Bool, unless the call's mask is the only one. `causal` is of the call or false. */
mix_tensor *mix_attention_mask(const mix_call_args *args, int64_t window, bool causal);

/* ---- projections ---- */

/* The options that layers of several heads hand on to their projections; all borrowed. */
typedef struct mix_projection_options {
  bool no_bias;
  mix_initializer *kernel_initializer, *bias_initializer;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  const char *quantization_config;
} mix_projection_options;
#define MIX_PROJECTION_OPTIONS(o)                                                                            \
  ((mix_projection_options){(o)->no_bias, (o)->kernel_initializer_object, (o)->bias_initializer_object,      \
                            (o)->kernel_regularizer, (o)->bias_regularizer, (o)->kernel_constraint,          \
                            (o)->bias_constraint, (o)->quantization_config})

/* An inner EinsumDense that sums over the last `bound` axes of an input of that shape, which it is built for,
 * and adds the axes of `sizes`. `attribute` is static. Borrowed from the layer. */
mix_layer *mix_projection(mix_layer *layer, const char *name, const char *attribute, mix_shape input,
                          int bound, mix_shape sizes, const char *activation,
                          const mix_projection_options *options);
/* `attribute`, or without its '_' where files have the name of the property. */
const char *mix_attention_attribute(const mix_layer *layer, const char *attribute);

/* ---- attention over heads ---- */

/* Inner layers and equations. Rank 4: query (batch, queries, heads, dimension), key and value alike. */
typedef struct mix_head_attention {
  mix_layer *softmax, *dropout; /* borrowed from the layer */
  double rate, scale;           /* of the dropout; of the scores */
  int attention_axes;           /* how many */
  char dot[5 * MIX_MAX_RANK], combine[5 * MIX_MAX_RANK];
  bool robust; /* masked scores are replaced, in tf_keras too */
  /* A query that attends to no key gets 0, as of Keras's Softmax, also where scores are in float32: else
   * their probabilities are alike, as of its dot_product_attention. */
  bool zeroes_masked;
  bool query_first; /* operand 0 of `dot` is the query, else the key */
  mix_tensor *bias; /* added to scaled scores; NULL: none */
  /* (heads): times the place of the key these are added too, of the call at hand (Press et al.: Train short,
   * test long; arXiv:2108.12409); NULL: none. */
  mix_tensor *slopes;
  double soft_cap; /* scaled scores are cap * tanh(score / cap); 0: none */
} mix_head_attention;

/* Makes the inner layers softmax and dropout. */
bool mix_head_attention_build(mix_layer *layer, mix_head_attention *attention, mix_axes softmax_axes,
                              uint64_t seed);
/* By the rules of a layer, or of an operation. The mask is the one of mix_attention_mask, without the causal
 * one. A list of the output and, if the call asks for it, the probabilities. */
mix_list *mix_attend(const mix_semantics *rules, const mix_head_attention *attention,
                     const mix_call_args *args, mix_tensor *const heads[3], mix_tensor *mask);

/* Bias and cap of scaled scores of any dtype. `bias` may be NULL. */
mix_tensor *mix_adjust_scores(const mix_head_attention *attention, mix_tensor *scores, mix_tensor *bias);

/* Casts them to one dtype where a map of policies gave the inner layers several, as Keras promotes them. */
bool mix_attention_promote(mix_tensor **tensors, int count);

/* ---- layers of projections ---- */

/* mix_attend in a whole sequence, with a mask that has the window; or as the sequence is decoded, with the
 * window alone (0: none). */
mix_list *mix_attend_layer(const mix_layer *layer, const mix_head_attention *attention,
                           const mix_call_args *args, mix_tensor *const heads[3], mix_tensor *mask,
                           int64_t window);
/* Can the call be decoded? Else the error is recorded. */
bool mix_attention_decodes(const mix_layer *layer, const mix_call_args *args);

extern const char *const mix_attention_tensors[]; /* query, value, key */
/* Is the value given? Else a TypeError. */
bool mix_attention_called(const mix_layer *layer, const mix_call_args *args);
/* The key, or the value in its place. */
mix_tensor *mix_attention_key(const mix_call_args *args);
/* The results of the layer from those of mix_attend; gate: NULL: none. */
mix_list *mix_attention_outputs(mix_list *attended, mix_layer *gate, mix_layer *output, mix_tensor *query);
