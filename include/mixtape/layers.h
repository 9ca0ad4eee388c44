/* The layers of the library. */
#ifndef MIXTAPE_LAYERS_H
#define MIXTAPE_LAYERS_H

#include <mixtape/activation.h>
#include <mixtape/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Input: a symbolic tensor from which a functional model starts ---- */
typedef struct mix_input_options {
  size_t size;
  mix_shape shape;                /* without the batch dimension; MIX_UNKNOWN dimensions are allowed */
  int64_t batch_size;             /* 0: unknown */
  const char *dtype;              /* NULL: floatx, whatever the policy */
  const char *name;               /* NULL: "input_1", "input_2", ... (keras3: "input_layer", ...) */
  const mix_semantics *semantics; /* NULL: the process's */
} mix_input_options;
MIX_API mix_tensor *mix_input_with(const mix_input_options *options);

/* ---- Dense: activation(x . kernel + bias), over the last axis of any rank >= 2. kernel (in, units), bias (units) ---- */
typedef struct mix_dense_options {
  size_t size;
  int64_t units;                       /* required, positive (ValueError) */
  MIX_LAYER_OPTIONS
  const char *activation;              /* NULL: linear */
  bool no_bias;                        /* Keras: use_bias=True */
  const char *kernel_initializer;      /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer;        /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
} mix_dense_options;
MIX_API mix_layer *mix_dense_with(const mix_dense_options *options);

/* ---- Activation ---- */
typedef struct mix_activation_options {
  size_t size;
  const char *activation;              /* required: a name of activation.h */
  MIX_LAYER_OPTIONS
} mix_activation_options;
MIX_API mix_layer *mix_activation_with(const mix_activation_options *options);

/* ---- Flatten: (batch, ...) -> (batch, all the rest) ---- */
typedef struct mix_flatten_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *data_format;             /* NULL: "channels_last"; "channels_first" is transposed to channels-last order first */
} mix_flatten_options;
MIX_API mix_layer *mix_flatten_with(const mix_flatten_options *options);

/* ---- Dropout: in training keeps each element with probability 1 - rate, scaled by 1 / (1 - rate) ---- */
typedef struct mix_dropout_options {
  size_t size;
  double rate;                         /* required, in [0, 1] (ValueError) */
  MIX_LAYER_OPTIONS
  mix_shape noise_shape;               /* rank 0: x's; a dimension of 1 shares the decision along it, MIX_UNKNOWN takes x's */
  uint64_t seed;                       /* 0: one of its own */
} mix_dropout_options;
MIX_API mix_layer *mix_dropout_with(const mix_dropout_options *options);

/* Options with their sizes set, for C++. */
MIX_API mix_input_options mix_input_defaults(void);
MIX_API mix_dense_options mix_dense_defaults(void);
MIX_API mix_activation_options mix_activation_defaults(void);
MIX_API mix_flatten_options mix_flatten_defaults(void);
MIX_API mix_dropout_options mix_dropout_defaults(void);

#ifndef __cplusplus
#define mix_input(...) mix_input_with(&(const mix_input_options){.size = sizeof(mix_input_options), __VA_ARGS__})
#define mix_dense(...) mix_dense_with(&(const mix_dense_options){.size = sizeof(mix_dense_options), __VA_ARGS__})
#define mix_activation(...) mix_activation_with(&(const mix_activation_options){.size = sizeof(mix_activation_options), __VA_ARGS__})
#define mix_flatten(...) mix_flatten_with(&(const mix_flatten_options){.size = sizeof(mix_flatten_options), __VA_ARGS__})
#define mix_dropout(...) mix_dropout_with(&(const mix_dropout_options){.size = sizeof(mix_dropout_options), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
