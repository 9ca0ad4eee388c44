/* The built-in layers. Where ops.h has an operation of the same name, the layer's name ends in _layer.
 * Formulas and weights are those of the Keras layer of that name. With 16-bit policies the generation
 * (`.semantics`) decides which parts stay in float32.
 * Each mix_..._with(options) creates a layer. Members marked "required" have no default. The macros at the
 * end fill in `size`; in C++ the mix_..._defaults() functions do so. */
#ifndef MIXTAPE_LAYERS_H
#define MIXTAPE_LAYERS_H

#include <mixtape/activation.h>
#include <mixtape/layer.h>

MIX_BEGIN_DECLARATIONS

/* ---- Input: a symbolic tensor, the start of a functional model ---- */
typedef struct mix_input_options {
  size_t size;
  mix_shape shape;                /* without the batch dimension; MIX_UNKNOWN dimensions are allowed */
  int64_t batch_size;             /* 0: unknown */
  const char *dtype;              /* NULL: floatx, whatever the policy */
  const char *name;               /* NULL: "input_1", "input_2", ... (keras3: "input_layer", ...) */
  const mix_semantics *semantics; /* NULL: the default of the process */
} mix_input_options;
MIX_API mix_tensor *mix_input_with(const mix_input_options *options);

/* ---- Dense: activation(x . kernel + bias) over the last axis of any rank >= 2; kernel (in, units), bias
 * (units) ---- */
typedef struct mix_dense_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t units;                  /* required, positive (ValueError) */
  const char *activation;         /* NULL: linear */
  bool no_bias;                   /* Keras: use_bias=True */
  const char *kernel_initializer; /* NULL: "glorot_uniform" */
  mix_initializer *kernel_initializer_object;
  const char *bias_initializer; /* NULL: "zeros" */
  mix_initializer *bias_initializer_object;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  /* Keras's quantization config as JSON, for layers made under a policy of the modes int8 and int4 with other
   * settings than the mode's; NULL: those. ValueError, NotImplementedError. */
  const char *quantization_config;
  MIX_LORA_OPTIONS
} mix_dense_options;
MIX_API mix_layer *mix_dense_with(const mix_dense_options *options);

/* ---- Activation: a function of activation.h by name, on any shape ---- */
typedef struct mix_activation_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *activation; /* required: a name of activation.h */
} mix_activation_options;
MIX_API mix_layer *mix_activation_with(const mix_activation_options *options);

/* ---- Flatten: (batch, ...) -> (batch, product of the others) ---- */
typedef struct mix_flatten_options {
  size_t size;
  MIX_LAYER_OPTIONS
  /* NULL: "channels_last". With "channels_first" the input is first transposed to channels-last order. */
  const char *data_format;
} mix_flatten_options;
MIX_API mix_layer *mix_flatten_with(const mix_flatten_options *options);

/* ---- Dropout ----
 * In training keeps each element with probability 1 - rate and scales it by 1 / (1 - rate). */
typedef struct mix_dropout_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double rate; /* required, in [0, 1] (ValueError) */
  /* Rank 0: the shape of x. A dimension of 1 shares the decision along it; MIX_UNKNOWN takes x's
   * dimension. */
  mix_shape noise_shape;
  uint64_t seed; /* 0: derived from the global seed */
} mix_dropout_options;
MIX_API mix_layer *mix_dropout_with(const mix_dropout_options *options);

/* ---- activation layers ---- */

/* Softmax over one or more axes. A mask of the call (true: keep) broadcasts against the input as in NumPy.
 * keras3 replaces masked elements by a large negative number and the results by zeros; tf_keras adds the
 * number. */
typedef struct mix_softmax_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;       /* empty: the last */
  bool robust_masking; /* tf_keras: replaces masked elements by the number, as keras3 does */
} mix_softmax_layer_options;
MIX_API mix_layer *mix_softmax_layer_with(const mix_softmax_layer_options *options);

/* ReLU: max_value where x >= max_value, x where x >= threshold, else negative_slope (x - threshold).
 * Negative options are a ValueError. */
typedef struct mix_relu_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double max_value; /* 0: none; MIX_ZERO is accepted */
  double negative_slope;
  double threshold;
} mix_relu_layer_options;
MIX_API mix_layer *mix_relu_layer_with(const mix_relu_layer_options *options);

/* LeakyReLU: x where x > 0, else negative_slope x. */
typedef struct mix_leaky_relu_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double negative_slope; /* Keras 2: alpha. 0 means 0.3; MIX_ZERO is accepted; negative: ValueError */
} mix_leaky_relu_layer_options;
MIX_API mix_layer *mix_leaky_relu_layer_with(const mix_leaky_relu_layer_options *options);

/* PReLU: x where x > 0, else alpha x. alpha has the input's shape without the batch, and size 1 along
 * shared axes. */
typedef struct mix_prelu_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *alpha_initializer; /* NULL: "zeros" */
  mix_initializer *alpha_initializer_object;
  mix_regularizer *alpha_regularizer;
  mix_constraint *alpha_constraint;
  /* Axis 0 is the batch, which must not be named; empty: none. */
  mix_axes shared_axes;
} mix_prelu_options;
MIX_API mix_layer *mix_prelu_with(const mix_prelu_options *options);

/* ELU: x where x > 0, else alpha (e^x - 1). */
typedef struct mix_elu_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double alpha; /* 0 means 1; MIX_ZERO is accepted */
} mix_elu_layer_options;
MIX_API mix_layer *mix_elu_layer_with(const mix_elu_layer_options *options);

/* ThresholdedReLU (Keras 2): x where x > theta, else 0. */
typedef struct mix_thresholded_relu_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double theta; /* 0 means 1; MIX_ZERO is accepted; negative: ValueError */
} mix_thresholded_relu_options;
MIX_API mix_layer *mix_thresholded_relu_with(const mix_thresholded_relu_options *options);

/* ---- shapes ---- */

/* Reshape: (batch, ...) -> (batch, target_shape...). ValueError if the number of elements differs. */
typedef struct mix_reshape_layer_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_shape target_shape; /* required; one dimension of -1 is computed */
} mix_reshape_layer_options;
MIX_API mix_layer *mix_reshape_layer_with(const mix_reshape_layer_options *options);

/* Permute: axis i of the result (1, 2, ...; the batch stays) is axis dims[i - 1] of the input. */
typedef struct mix_permute_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes dims; /* required: a permutation of 1 to n (ValueError) */
} mix_permute_options;
MIX_API mix_layer *mix_permute_with(const mix_permute_options *options);

/* RepeatVector: (batch, features) -> (batch, n, features). */
typedef struct mix_repeat_vector_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t n; /* required, positive (ValueError) */
} mix_repeat_vector_options;
MIX_API mix_layer *mix_repeat_vector_with(const mix_repeat_vector_options *options);

/* Masking: input (batch, steps, features). Sets steps to zero if all their features equal mask_value. The
 * result carries the mask (batch, steps), true where some feature differs. */
typedef struct mix_masking_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double mask_value;
} mix_masking_options;
MIX_API mix_layer *mix_masking_with(const mix_masking_options *options);

/* ---- merging layers: called with a list of tensors ----
 * Inputs of lower rank are expanded at axis 1. ValueError if batch sizes differ. */
typedef struct mix_merge_options {
  size_t size;
  MIX_LAYER_OPTIONS
} mix_merge_options;
/* The element-wise sum of two or more inputs. */
MIX_API mix_layer *mix_add_layer_with(const mix_merge_options *options);
/* The first of exactly two inputs minus the second. */
MIX_API mix_layer *mix_subtract_layer_with(const mix_merge_options *options);
/* The element-wise product, mean, maximum or minimum of two or more inputs. */
MIX_API mix_layer *mix_multiply_layer_with(const mix_merge_options *options);
MIX_API mix_layer *mix_average_with(const mix_merge_options *options);
MIX_API mix_layer *mix_maximum_layer_with(const mix_merge_options *options);
MIX_API mix_layer *mix_minimum_layer_with(const mix_merge_options *options);

typedef struct mix_concatenate_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int axis; /* 0 means the last; MIX_AXIS_0 means 0 */
} mix_concatenate_options;
/* Concatenates the inputs, whose other dimensions must be equal. */
MIX_API mix_layer *mix_concatenate_with(const mix_concatenate_options *options);

/* Dot: the sum of products along one axis of each of two inputs, for each sample. Two vectors (batch, n)
 * give (batch, 1). */
typedef struct mix_dot_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axes;  /* required: one for both, or one for each; not the batch */
  bool normalize; /* normalize the inputs to unit length along these axes first */
} mix_dot_options;
MIX_API mix_layer *mix_dot_with(const mix_dot_options *options);

/* ---- preprocessing ---- */

/* Rescaling: x scale + offset, in the compute dtype. */
typedef struct mix_rescaling_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double scale; /* required; MIX_ZERO is accepted */
  double offset;
} mix_rescaling_options;
MIX_API mix_layer *mix_rescaling_with(const mix_rescaling_options *options);

/* Normalization: (x - mean) / max(sqrt(variance), 1e-7), with a mean and a variance for each element of
 * the kept axes. They are given, or learnt by adapt; then they are weights: mean, variance, count (int64). */
typedef struct mix_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;               /* the axes kept; empty: the last */
  bool axis_none;              /* Keras: axis=None: one mean and one variance for all */
  mix_tensor *mean, *variance; /* both or none; broadcast to the sizes of the kept axes */
  bool invert;                 /* mean + x max(sqrt(variance), 1e-7) */
} mix_normalization_options;
MIX_API mix_layer *mix_normalization_with(const mix_normalization_options *options);
/* Learns mean and biased variance of `data` over the axes that are not kept, replacing earlier ones. */
MIX_API mix_status mix_normalization_adapt(mix_layer *layer, mix_tensor *data);
/* The same from many batches: reset, then add each batch, weighted by its number of elements. */
MIX_API mix_status mix_normalization_reset(mix_layer *layer);
MIX_API mix_status mix_normalization_update(mix_layer *layer, mix_tensor *batch);

/* Discretization: the number of boundaries that are not above x, as int64 or encoded. dtype defaults to
 * int64, with an encoding to floatx. */
typedef struct mix_discretization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const double *bin_boundaries; /* copied; ascending (ValueError). Either these or num_bins with adapt */
  int boundary_count;
  int64_t num_bins;
  double epsilon;          /* of the quantiles of adapt: 0 means 0.01; in (0, 1) */
  const char *output_mode; /* NULL: "int"; "one_hot", "multi_hot", "count" as in CategoryEncoding */
} mix_discretization_options;
MIX_API mix_layer *mix_discretization_with(const mix_discretization_options *options);
/* Learns num_bins - 1 boundaries so that all bins have equal counts; and the same from many batches. */
MIX_API mix_status mix_discretization_adapt(mix_layer *layer, mix_tensor *data);
MIX_API mix_status mix_discretization_reset(mix_layer *layer);
MIX_API mix_status mix_discretization_update(mix_layer *layer, mix_tensor *batch);

/* CategoryEncoding: ids (..., n) in [0, num_tokens) to floatx, whatever the policy (set dtype for
 * another). multi_hot and count encode the last axis: (..., num_tokens). one_hot encodes each id: (..., n,
 * num_tokens), or (..., num_tokens) if n is 1. `count` takes weights of the ids' shape as the first
 * further argument of the call. An id out of range is an error at run time in tf_keras, and gives zeros in
 * keras3. */
typedef struct mix_category_encoding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t num_tokens;      /* required, positive (ValueError) */
  const char *output_mode; /* NULL: "multi_hot"; "one_hot", "count" */
} mix_category_encoding_options;
MIX_API mix_layer *mix_category_encoding_with(const mix_category_encoding_options *options);

/* ---- Embedding: rows of embeddings (input_dim, output_dim) at integer indices; other dtypes are cast to
 * int32 ---- */
typedef struct mix_embedding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t input_dim, output_dim;      /* required, positive (ValueError) */
  const char *embeddings_initializer; /* NULL: "uniform", +-0.05 */
  mix_initializer *embeddings_initializer_object;
  mix_regularizer *embeddings_regularizer;
  mix_constraint *embeddings_constraint;
  bool mask_zero;                  /* the result carries the mask indices != 0 */
  const char *quantization_config; /* as of Dense */
  MIX_LORA_OPTIONS
} mix_embedding_options;
MIX_API mix_layer *mix_embedding_with(const mix_embedding_options *options);

/* ---- ReversibleEmbedding (keras3): an Embedding that, called with .reverse = true, gives (..., output_dim)
 * times the transposed embeddings: a logit for each of the input_dim rows ---- */
typedef struct mix_reversible_embedding_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t input_dim, output_dim;      /* required, positive (ValueError) */
  bool untied_weights;                /* Keras: tie_weights=True; reverse has a table of its own */
  const char *embeddings_initializer; /* NULL: "uniform", +-0.05; of both tables */
  mix_initializer *embeddings_initializer_object;
  mix_regularizer *embeddings_regularizer;
  mix_constraint *embeddings_constraint;
  bool mask_zero;                  /* the result carries the mask indices != 0 */
  const char *reverse_dtype;       /* of the logits: "float32"; NULL: the compute dtype */
  double logit_soft_cap;           /* logits become cap tanh(logits / cap); 0: as they are */
  const char *quantization_config; /* as of Dense */
  MIX_LORA_OPTIONS
} mix_reversible_embedding_options;
MIX_API mix_layer *mix_reversible_embedding_with(const mix_reversible_embedding_options *options);

/* ---- normalization ---- */

/* BatchNormalization: gamma (x - mean) / sqrt(variance + epsilon) + beta. In training, unless frozen, mean
 * and biased variance are those of the batch over all axes but `axis`, and the weights moving_mean and
 * moving_variance move towards them. Otherwise these weights are used. */
typedef struct mix_batch_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int axis;                                         /* 0 means the last; MIX_AXIS_0 means 0 */
  double momentum;                                  /* 0 means 0.99; MIX_ZERO is accepted */
  double epsilon;                                   /* 0 means 1e-3; MIX_ZERO is accepted */
  bool no_center, no_scale;                         /* Keras: center=True, scale=True: beta, gamma */
  const char *beta_initializer, *gamma_initializer; /* NULL: "zeros", "ones" */
  const char *moving_mean_initializer, *moving_variance_initializer; /* NULL: "zeros", "ones" */
  mix_initializer *beta_initializer_object, *gamma_initializer_object;
  mix_initializer *moving_mean_initializer_object, *moving_variance_initializer_object;
  mix_regularizer *beta_regularizer, *gamma_regularizer;
  mix_constraint *beta_constraint, *gamma_constraint;
  bool fused;        /* tf_keras: requires the fused rules (rank 4 or 5, not float64: ValueError) */
  bool not_fused;    /* tf_keras: fused=False */
  bool synchronized; /* moments over the rows of all ranks (mixtape/distribute.h); never fused */
  /* Keras 3's batch renormalization (arXiv:1702.03275): training uses x r + d instead of x, where r and d
   * lead from the statistics of the batch to moving ones, the weights renorm_mean and renorm_stddev. */
  bool renorm;
  double renorm_rmin, renorm_rmax, renorm_dmax; /* bounds of r and of |d|; 0: none; MIX_ZERO is accepted */
  double renorm_momentum;                       /* of these weights; 0 means 0.99; MIX_ZERO is accepted */
} mix_batch_normalization_options;
MIX_API mix_layer *mix_batch_normalization_with(const mix_batch_normalization_options *options);

/* LayerNormalization: normalizes by the mean and biased variance of each sample over the axes. gamma and
 * beta have the sizes of the axes. */
typedef struct mix_layer_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;                                    /* empty: the last */
  double epsilon;                                   /* 0 means 1e-3; MIX_ZERO is accepted */
  bool no_center, no_scale;                         /* Keras: center=True, scale=True: beta, gamma */
  const char *beta_initializer, *gamma_initializer; /* NULL: "zeros", "ones" */
  mix_initializer *beta_initializer_object, *gamma_initializer_object;
  mix_regularizer *beta_regularizer, *gamma_regularizer;
  mix_constraint *beta_constraint, *gamma_constraint;
} mix_layer_normalization_options;
MIX_API mix_layer *mix_layer_normalization_with(const mix_layer_normalization_options *options);

/* GroupNormalization: normalizes by the mean and variance of each sample and group of channels; gamma and
 * beta (channels). */
typedef struct mix_group_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t groups;           /* 0 means 32; -1: one for each channel; must divide the channels (ValueError) */
  int axis;                 /* 0 means the last; must not be the batch */
  double epsilon;           /* 0 means 1e-3; MIX_ZERO is accepted */
  bool no_center, no_scale; /* Keras: center=True, scale=True: beta, gamma */
  const char *beta_initializer, *gamma_initializer; /* NULL: "zeros", "ones" */
  mix_initializer *beta_initializer_object, *gamma_initializer_object;
  mix_regularizer *beta_regularizer, *gamma_regularizer;
  mix_constraint *beta_constraint, *gamma_constraint;
} mix_group_normalization_options;
MIX_API mix_layer *mix_group_normalization_with(const mix_group_normalization_options *options);

/* RMSNormalization (Keras 3): x / sqrt(mean of x^2 over the axes + epsilon) * scale. */
typedef struct mix_rms_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;  /* empty: the last */
  double epsilon; /* 0 means 1e-6; MIX_ZERO is accepted */
} mix_rms_normalization_options;
MIX_API mix_layer *mix_rms_normalization_with(const mix_rms_normalization_options *options);

/* UnitNormalization: x / ||x||_2 over the axes. */
typedef struct mix_unit_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis; /* empty: the last */
} mix_unit_normalization_options;
MIX_API mix_layer *mix_unit_normalization_with(const mix_unit_normalization_options *options);

/* SpectralNormalization: a layer whose weight "kernel" or "embeddings" is divided by an estimate of its
 * largest singular value in each training call. The weight vector_u (1, columns) is the estimate's state. */
typedef struct mix_spectral_normalization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *layer;         /* required; retained */
  int64_t power_iterations; /* 0 means 1; 1 to 1024 (ValueError) */
} mix_spectral_normalization_options;
MIX_API mix_layer *mix_spectral_normalization_with(const mix_spectral_normalization_options *options);

/* ---- noise and penalties: active only in training ---- */

/* SpatialDropout: Dropout that keeps or drops whole channels. 1D takes (batch, steps, channels). */
typedef struct mix_spatial_dropout_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double rate;             /* required, in [0, 1] (ValueError) */
  const char *data_format; /* NULL: "channels_last"; "channels_first" (2D, 3D) */
  uint64_t seed;           /* 0: derived from the global seed */
} mix_spatial_dropout_options;
MIX_API mix_layer *mix_spatial_dropout1d_with(const mix_spatial_dropout_options *options);
MIX_API mix_layer *mix_spatial_dropout2d_with(const mix_spatial_dropout_options *options);
MIX_API mix_layer *mix_spatial_dropout3d_with(const mix_spatial_dropout_options *options);

/* GaussianNoise: x + N(0, stddev^2). */
typedef struct mix_gaussian_noise_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double stddev; /* required, not negative (ValueError) */
  uint64_t seed; /* 0: derived from the global seed */
} mix_gaussian_noise_options;
MIX_API mix_layer *mix_gaussian_noise_with(const mix_gaussian_noise_options *options);

/* GaussianDropout: x N(1, rate / (1 - rate)). */
typedef struct mix_gaussian_dropout_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double rate;   /* required, in [0, 1) (ValueError) */
  uint64_t seed; /* 0: derived from the global seed */
} mix_gaussian_dropout_options;
MIX_API mix_layer *mix_gaussian_dropout_with(const mix_gaussian_dropout_options *options);

/* AlphaDropout: Dropout that preserves mean and variance of the results of SELU. */
typedef struct mix_alpha_dropout_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double rate;           /* required, in [0, 1) (ValueError) */
  mix_shape noise_shape; /* as in Dropout */
  uint64_t seed;         /* 0: derived from the global seed */
} mix_alpha_dropout_options;
MIX_API mix_layer *mix_alpha_dropout_with(const mix_alpha_dropout_options *options);

/* ActivityRegularization: returns x and adds l1 sum |x| + l2 sum x^2 to the losses, in and out of
 * training. */
typedef struct mix_activity_regularization_options {
  size_t size;
  MIX_LAYER_OPTIONS
  double l1, l2; /* not negative (ValueError) */
} mix_activity_regularization_options;
MIX_API mix_layer *mix_activity_regularization_with(const mix_activity_regularization_options *options);

/* ---- Lambda: a C function as a layer. Its config names the function, but cannot be deserialized
 * (ValueError) ---- */
typedef struct mix_lambda_options {
  size_t size;
  MIX_LAYER_OPTIONS
  /* Required; the arguments are those of a layer class's call. */
  mix_tensor *(*function)(void *context, const mix_call_args *args);
  void *context;
  /* The mask of the result; NULL: none. */
  mix_tensor *(*mask)(void *context, const mix_call_args *args);
  const char *function_name; /* for the config; NULL: "lambda" */
  bool decodes;              /* each position depends on itself alone: that of mix_layer_class */
} mix_lambda_options;
MIX_API mix_layer *mix_lambda_with(const mix_lambda_options *options);

/* Options with `size` set, for C++. */
MIX_API mix_input_options mix_input_defaults(void);
MIX_API mix_dense_options mix_dense_defaults(void);
MIX_API mix_activation_options mix_activation_defaults(void);
MIX_API mix_flatten_options mix_flatten_defaults(void);
MIX_API mix_dropout_options mix_dropout_defaults(void);
MIX_API mix_softmax_layer_options mix_softmax_layer_defaults(void);
MIX_API mix_relu_layer_options mix_relu_layer_defaults(void);
MIX_API mix_leaky_relu_layer_options mix_leaky_relu_layer_defaults(void);
MIX_API mix_prelu_options mix_prelu_defaults(void);
MIX_API mix_elu_layer_options mix_elu_layer_defaults(void);
MIX_API mix_thresholded_relu_options mix_thresholded_relu_defaults(void);
MIX_API mix_reshape_layer_options mix_reshape_layer_defaults(void);
MIX_API mix_permute_options mix_permute_defaults(void);
MIX_API mix_repeat_vector_options mix_repeat_vector_defaults(void);
MIX_API mix_masking_options mix_masking_defaults(void);
MIX_API mix_merge_options mix_merge_defaults(void);
MIX_API mix_concatenate_options mix_concatenate_defaults(void);
MIX_API mix_dot_options mix_dot_defaults(void);
MIX_API mix_rescaling_options mix_rescaling_defaults(void);
MIX_API mix_normalization_options mix_normalization_defaults(void);
MIX_API mix_discretization_options mix_discretization_defaults(void);
MIX_API mix_category_encoding_options mix_category_encoding_defaults(void);
MIX_API mix_embedding_options mix_embedding_defaults(void);
MIX_API mix_reversible_embedding_options mix_reversible_embedding_defaults(void);
MIX_API mix_batch_normalization_options mix_batch_normalization_defaults(void);
MIX_API mix_layer_normalization_options mix_layer_normalization_defaults(void);
MIX_API mix_group_normalization_options mix_group_normalization_defaults(void);
MIX_API mix_rms_normalization_options mix_rms_normalization_defaults(void);
MIX_API mix_unit_normalization_options mix_unit_normalization_defaults(void);
MIX_API mix_spectral_normalization_options mix_spectral_normalization_defaults(void);
MIX_API mix_spatial_dropout_options mix_spatial_dropout_defaults(void);
MIX_API mix_gaussian_noise_options mix_gaussian_noise_defaults(void);
MIX_API mix_gaussian_dropout_options mix_gaussian_dropout_defaults(void);
MIX_API mix_alpha_dropout_options mix_alpha_dropout_defaults(void);
MIX_API mix_activity_regularization_options mix_activity_regularization_defaults(void);
MIX_API mix_lambda_options mix_lambda_defaults(void);

#ifndef __cplusplus
#define mix_input(...)                                                                                       \
  mix_input_with(                                                                                            \
      MIX_ARGUMENTS("mix_input", "shape; MIX_SHAPE(shape)", #__VA_ARGS__, mix_input_options, __VA_ARGS__))
#define mix_dense(...)                                                                                       \
  MIX_LAYER_OF(mix_dense, "units, activation", #__VA_ARGS__, mix_dense_options, __VA_ARGS__)
#define mix_activation(...)                                                                                  \
  MIX_LAYER_OF(mix_activation, "activation", #__VA_ARGS__, mix_activation_options, __VA_ARGS__)
#define mix_flatten(...)                                                                                     \
  MIX_LAYER_OF(mix_flatten, "data_format", #__VA_ARGS__, mix_flatten_options, __VA_ARGS__)
#define mix_dropout(...)                                                                                     \
  MIX_LAYER_OF(mix_dropout, "rate; MIX_SHAPE(noise_shape)", #__VA_ARGS__, mix_dropout_options, __VA_ARGS__)
#define mix_softmax_layer(...)                                                                               \
  MIX_LAYER_OF(mix_softmax_layer, "; MIX_AXES(axis)", #__VA_ARGS__, mix_softmax_layer_options, __VA_ARGS__)
#define mix_relu_layer(...)                                                                                  \
  MIX_LAYER_OF(mix_relu_layer, "!max_value, negative_slope, threshold", #__VA_ARGS__,                        \
               mix_relu_layer_options, __VA_ARGS__)
#define mix_leaky_relu_layer(...)                                                                            \
  MIX_LAYER_OF(mix_leaky_relu_layer, "!negative_slope", #__VA_ARGS__, mix_leaky_relu_layer_options,          \
               __VA_ARGS__)
#define mix_prelu(...)                                                                                       \
  MIX_LAYER_OF(mix_prelu, "!alpha_initializer; MIX_AXES(shared_axes)", #__VA_ARGS__, mix_prelu_options,      \
               __VA_ARGS__)
#define mix_elu_layer(...)                                                                                   \
  MIX_LAYER_OF(mix_elu_layer, "!alpha", #__VA_ARGS__, mix_elu_layer_options, __VA_ARGS__)
#define mix_thresholded_relu(...)                                                                            \
  MIX_LAYER_OF(mix_thresholded_relu, "!theta", #__VA_ARGS__, mix_thresholded_relu_options, __VA_ARGS__)
#define mix_reshape_layer(...)                                                                               \
  MIX_LAYER_OF(mix_reshape_layer, "target_shape; MIX_SHAPE(target_shape)", #__VA_ARGS__,                     \
               mix_reshape_layer_options, __VA_ARGS__)
#define mix_permute(...)                                                                                     \
  MIX_LAYER_OF(mix_permute, "dims; MIX_AXES(dims)", #__VA_ARGS__, mix_permute_options, __VA_ARGS__)
#define mix_repeat_vector(...)                                                                               \
  MIX_LAYER_OF(mix_repeat_vector, "n", #__VA_ARGS__, mix_repeat_vector_options, __VA_ARGS__)
#define mix_masking(...)                                                                                     \
  MIX_LAYER_OF(mix_masking, "mask_value", #__VA_ARGS__, mix_masking_options, __VA_ARGS__)
#define mix_add_layer(...) MIX_LAYER_OF(mix_add_layer, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_subtract_layer(...)                                                                              \
  MIX_LAYER_OF(mix_subtract_layer, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_multiply_layer(...)                                                                              \
  MIX_LAYER_OF(mix_multiply_layer, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_average(...) MIX_LAYER_OF(mix_average, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_maximum_layer(...)                                                                               \
  MIX_LAYER_OF(mix_maximum_layer, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_minimum_layer(...)                                                                               \
  MIX_LAYER_OF(mix_minimum_layer, "", #__VA_ARGS__, mix_merge_options, __VA_ARGS__)
#define mix_concatenate(...)                                                                                 \
  MIX_LAYER_OF(mix_concatenate, "!axis", #__VA_ARGS__, mix_concatenate_options, __VA_ARGS__)
#define mix_dot(...) MIX_LAYER_OF(mix_dot, "; MIX_AXES(axes)", #__VA_ARGS__, mix_dot_options, __VA_ARGS__)
#define mix_rescaling(...)                                                                                   \
  MIX_LAYER_OF(mix_rescaling, "!scale, offset", #__VA_ARGS__, mix_rescaling_options, __VA_ARGS__)
#define mix_normalization(...)                                                                               \
  MIX_LAYER_OF(mix_normalization, "; MIX_AXES(axis)", #__VA_ARGS__, mix_normalization_options, __VA_ARGS__)
#define mix_discretization(...)                                                                              \
  MIX_LAYER_OF(mix_discretization, "", #__VA_ARGS__, mix_discretization_options, __VA_ARGS__)
#define mix_category_encoding(...)                                                                           \
  MIX_LAYER_OF(mix_category_encoding, "num_tokens, !output_mode", #__VA_ARGS__,                              \
               mix_category_encoding_options, __VA_ARGS__)
#define mix_embedding(...)                                                                                   \
  MIX_LAYER_OF(mix_embedding, "input_dim, output_dim, !embeddings_initializer", #__VA_ARGS__,                \
               mix_embedding_options, __VA_ARGS__)
#define mix_reversible_embedding(...)                                                                        \
  MIX_LAYER_OF(mix_reversible_embedding, "input_dim, output_dim", #__VA_ARGS__,                              \
               mix_reversible_embedding_options, __VA_ARGS__)
#define mix_batch_normalization(...)                                                                         \
  MIX_LAYER_OF(mix_batch_normalization, "!axis, !momentum, !epsilon", #__VA_ARGS__,                          \
               mix_batch_normalization_options, __VA_ARGS__)
#define mix_layer_normalization(...)                                                                         \
  MIX_LAYER_OF(mix_layer_normalization, "; MIX_AXES(axis)", #__VA_ARGS__, mix_layer_normalization_options,   \
               __VA_ARGS__)
#define mix_group_normalization(...)                                                                         \
  MIX_LAYER_OF(mix_group_normalization, "!groups, !axis, !epsilon", #__VA_ARGS__,                            \
               mix_group_normalization_options, __VA_ARGS__)
#define mix_rms_normalization(...)                                                                           \
  MIX_LAYER_OF(mix_rms_normalization, "; MIX_AXES(axis)", #__VA_ARGS__, mix_rms_normalization_options,       \
               __VA_ARGS__)
#define mix_unit_normalization(...)                                                                          \
  MIX_LAYER_OF(mix_unit_normalization, "; MIX_AXES(axis)", #__VA_ARGS__, mix_unit_normalization_options,     \
               __VA_ARGS__)
#define mix_spectral_normalization(...)                                                                      \
  MIX_LAYER_OF(mix_spectral_normalization, "layer, !power_iterations", #__VA_ARGS__,                         \
               mix_spectral_normalization_options, __VA_ARGS__)
#define mix_spatial_dropout1d(...)                                                                           \
  MIX_LAYER_OF(mix_spatial_dropout1d, "rate", #__VA_ARGS__, mix_spatial_dropout_options, __VA_ARGS__)
#define mix_spatial_dropout2d(...)                                                                           \
  MIX_LAYER_OF(mix_spatial_dropout2d, "rate", #__VA_ARGS__, mix_spatial_dropout_options, __VA_ARGS__)
#define mix_spatial_dropout3d(...)                                                                           \
  MIX_LAYER_OF(mix_spatial_dropout3d, "rate", #__VA_ARGS__, mix_spatial_dropout_options, __VA_ARGS__)
#define mix_gaussian_noise(...)                                                                              \
  MIX_LAYER_OF(mix_gaussian_noise, "stddev", #__VA_ARGS__, mix_gaussian_noise_options, __VA_ARGS__)
#define mix_gaussian_dropout(...)                                                                            \
  MIX_LAYER_OF(mix_gaussian_dropout, "rate", #__VA_ARGS__, mix_gaussian_dropout_options, __VA_ARGS__)
#define mix_alpha_dropout(...)                                                                               \
  MIX_LAYER_OF(mix_alpha_dropout, "rate; MIX_SHAPE(noise_shape)", #__VA_ARGS__, mix_alpha_dropout_options,   \
               __VA_ARGS__)
#define mix_activity_regularization(...)                                                                     \
  MIX_LAYER_OF(mix_activity_regularization, "l1, l2", #__VA_ARGS__, mix_activity_regularization_options,     \
               __VA_ARGS__)
#define mix_lambda(...) MIX_LAYER_OF(mix_lambda, "function", #__VA_ARGS__, mix_lambda_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
