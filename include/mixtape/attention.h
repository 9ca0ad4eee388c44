/* Attention layers and EinsumDense. Formulas and weights are those of the Keras layer of that name; with
 * 16-bit policies the generation (`.semantics`) decides which parts stay in float32. Dot-product attention is
 * computed block by block, without all scores in memory, where they are not asked for. */
#ifndef MIXTAPE_ATTENTION_H
#define MIXTAPE_ATTENTION_H

#include <mixtape/layers.h>

MIX_BEGIN_DECLARATIONS

/* ---- EinsumDense: activation(einsum(equation, x, kernel) + bias) ---- */
typedef struct mix_einsum_dense_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *equation; /* required: "abc,cd->abd"; "..." at the begin or the end of both input and result */
  mix_shape output_shape; /* required: of the result without the batch and "..."; MIX_UNKNOWN: the input's */
  const char *activation; /* NULL: linear */
  const char *bias_axes;  /* letters of the result: "d"; NULL: no bias */
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  const char *quantization_config; /* as of Dense */
  MIX_LORA_OPTIONS
} mix_einsum_dense_options;
/* ValueError for an equation of another form, at the first call if it does not fit the input. */
MIX_API mix_layer *mix_einsum_dense_with(const mix_einsum_dense_options *options);

/* ---- MultiHeadAttention ----
 * Called with the query (batch, ..., features) as input and, as .arguments, the value and optionally the key
 * (NULL: the value): mix_call(layer, x, .arguments = mix_list_of(x)). The masks that they carry,
 * .attention_mask (batch, query axes, key axes) and .use_causal_mask are combined. With
 * .return_attention_scores the second result is (batch, heads, query axes, key axes).
 * Inner layers: "query", "key", "value", "attention_output" ("gate"), with kernels (features, heads,
 * dimensions). */
typedef struct mix_multi_head_attention_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_heads, key_dim;     /* required, positive (ValueError) */
  int64_t value_dim;              /* 0: key_dim */
  double dropout;                 /* of the probabilities, in [0, 1] */
  bool no_bias;                   /* Keras: use_bias=True */
  mix_shape output_shape;         /* of the last axes of the result; rank 0: the query's features */
  mix_axes attention_axes;        /* empty: all but the batch and the features */
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  bool use_gate;               /* keras3: multiplies by sigmoid(gate(query)) before the last projection */
  int64_t sliding_window;      /* keras3: a query attends to keys less than that far away; 0: to all */
  uint64_t seed;               /* of the dropout; 0: derived from the global seed */
  bool softmax_robust_masking; /* tf_keras: masked scores are replaced by a low number, not lowered by it */
  const char *quantization_config; /* of the inner layers, as of Dense */
} mix_multi_head_attention_options;
MIX_API mix_layer *mix_multi_head_attention_with(const mix_multi_head_attention_options *options);

/* ---- GroupQueryAttention (keras3) ----
 * As MultiHeadAttention over axis 1, with fewer heads of keys and values, each for a group of query heads. */
typedef struct mix_grouped_query_attention_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t head_dim, num_query_heads; /* required, positive (ValueError) */
  int64_t num_key_value_heads;       /* required; divides num_query_heads (ValueError) */
  double dropout;
  bool no_bias;                   /* Keras: use_bias=True */
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  bool use_gate;
  int64_t sliding_window;
  uint64_t seed;
  const char *quantization_config; /* of the inner layers, as of Dense */
} mix_grouped_query_attention_options;
MIX_API mix_layer *mix_grouped_query_attention_with(const mix_grouped_query_attention_options *options);

/* ---- Attention ----
 * Called with a list [query (batch, Tq, dim), value (batch, Tv, dim)] or [query, value, key]:
 * softmax(query . key) . value. Masks: [query's, value's]; .use_causal_mask; .return_attention_scores. */
typedef struct mix_attention_options {
  size_t size;
  MIX_LAYER_OPTIONS
  bool use_scale;         /* scores are multiplied by a weight "scale", which starts at 1 */
  const char *score_mode; /* NULL: "dot"; "concat": concat_score_weight * sum(tanh(scale * (query + key))) */
  double dropout;         /* of the probabilities, in [0, 1] */
  uint64_t seed;          /* 0: derived from the global seed */
} mix_attention_options;
MIX_API mix_layer *mix_attention_with(const mix_attention_options *options);

/* ---- AdditiveAttention: as Attention, with scores sum(scale * tanh(query + key)), scale (dim) ---- */
typedef struct mix_additive_attention_options {
  size_t size;
  MIX_LAYER_OPTIONS
  bool no_scale; /* Keras: use_scale=True */
  double dropout;
  uint64_t seed;
} mix_additive_attention_options;
MIX_API mix_layer *mix_additive_attention_with(const mix_additive_attention_options *options);

MIX_API mix_einsum_dense_options mix_einsum_dense_defaults(void);
MIX_API mix_multi_head_attention_options mix_multi_head_attention_defaults(void);
MIX_API mix_grouped_query_attention_options mix_grouped_query_attention_defaults(void);
MIX_API mix_attention_options mix_attention_defaults(void);
MIX_API mix_additive_attention_options mix_additive_attention_defaults(void);

#ifndef __cplusplus
#define mix_einsum_dense(...)                                                                                \
  MIX_LAYER_OF(mix_einsum_dense, "equation; MIX_SHAPE(output_shape)", #__VA_ARGS__,                          \
               mix_einsum_dense_options, __VA_ARGS__)
#define mix_multi_head_attention(...)                                                                        \
  MIX_LAYER_OF(mix_multi_head_attention,                                                                     \
               "num_heads, key_dim, value_dim, dropout; MIX_SHAPE(output_shape), MIX_AXES(attention_axes)",  \
               #__VA_ARGS__, mix_multi_head_attention_options, __VA_ARGS__)
#define mix_grouped_query_attention(...)                                                                     \
  MIX_LAYER_OF(mix_grouped_query_attention, "head_dim, num_query_heads, num_key_value_heads, dropout",       \
               #__VA_ARGS__, mix_grouped_query_attention_options, __VA_ARGS__)
#define mix_attention(...)                                                                                   \
  MIX_LAYER_OF(mix_attention, "use_scale, !score_mode, dropout", #__VA_ARGS__, mix_attention_options,        \
               __VA_ARGS__)
#define mix_additive_attention(...)                                                                          \
  MIX_LAYER_OF(mix_additive_attention, "", #__VA_ARGS__, mix_additive_attention_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
