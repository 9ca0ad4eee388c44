/* Helpers that the layers share: configs, shapes, axes, noise, categories, and the list of layer classes. */
#ifndef MIX_NN_LAYERS_BUILTIN_H
#define MIX_NN_LAYERS_BUILTIN_H

#include "nn/config.h"
#include "nn/layer/layer.h"
#include <mixtape/ops.h>

/* The class name in configs, and the name in the function mix_<name>_from of the layer's file. */
#define MIX_BUILT_IN_LAYERS(X)                                                                               \
  X(Softmax, softmax_layer) X(ReLU, relu_layer) X(LeakyReLU, leaky_relu_layer) X(PReLU, prelu)               \
  X(ELU, elu_layer) X(ThresholdedReLU, thresholded_relu) X(Reshape, reshape_layer) X(Permute, permute)       \
  X(RepeatVector, repeat_vector) X(Masking, masking) X(Add, add_layer) X(Subtract, subtract_layer)           \
  X(Multiply, multiply_layer) X(Average, average) X(Maximum, maximum_layer) X(Minimum, minimum_layer)        \
  X(Concatenate, concatenate) X(Dot, dot) X(Rescaling, rescaling) X(Normalization, normalization)            \
  X(Discretization, discretization) X(CategoryEncoding, category_encoding) X(Embedding, embedding)           \
  X(BatchNormalization, batch_normalization) X(LayerNormalization, layer_normalization)                      \
  X(GroupNormalization, group_normalization) X(RMSNormalization, rms_normalization)                          \
  X(UnitNormalization, unit_normalization) X(SpatialDropout1D, spatial_dropout1d)                            \
  X(SpatialDropout2D, spatial_dropout2d) X(SpatialDropout3D, spatial_dropout3d)                              \
  X(GaussianNoise, gaussian_noise) X(GaussianDropout, gaussian_dropout) X(AlphaDropout, alpha_dropout)       \
  X(ActivityRegularization, activity_regularization) X(Lambda, lambda)
#define MIX_DECLARE_FROM(class_name, name)                                                                   \
  mix_layer *mix_##name##_from(const json_t *config, const mix_semantics *semantics);
MIX_BUILT_IN_LAYERS(MIX_DECLARE_FROM)
#undef MIX_DECLARE_FROM

/* ---- configs ---- */

/* The fields that every layer's config has. The objects are scoped. */
typedef struct mix_common_config {
  const char *name;
  mix_policy *policy;
  bool not_trainable;
  mix_regularizer *activity_regularizer;
  const mix_semantics *semantics;
} mix_common_config;
mix_common_config mix_common_config_of(const json_t *config, const mix_semantics *semantics);
/* Initialises these fields of an options struct. */
#define MIX_COMMON_CONFIG(c)                                                                                 \
  .name = (c).name, .policy = (c).policy, .not_trainable = (c).not_trainable,                                \
  .activity_regularizer = (c).activity_regularizer, .semantics = (c).semantics

/* A number in the form that options take: 0 becomes MIX_ZERO. */
double mix_json_option_number(const json_t *object, const char *key, double default_value);
/* From a list of sizes with null for an unknown size. Anything else gives rank 0. */
mix_shape mix_json_shape(const json_t *json);
json_t *mix_shape_to_json(mix_shape shape);
/* From an axis or a list of axes. Anything else gives an empty list. */
mix_axes mix_json_axes(const json_t *json);
/* One axis as an integer, several as a list, none as -1. */
json_t *mix_axes_to_json(mix_axes axes);
/* Checks a caller's axes: false with a ValueError if the count is not in 0 to MIX_MAX_RANK. */
bool mix_axes_option(mix_axes axes, const char *call, const char *option);
/* Converts an axis from the form of options (0 means the last, MIX_AXIS_0 means 0), and back. */
static inline int mix_axis_number(int option) {
  return option == 0 ? -1 : option == MIX_AXIS_0 ? 0 : option;
}
static inline int mix_axis_option(int64_t number) { return number == 0 ? MIX_AXIS_0 : (int)number; }
/* Sets "seed"; 0 is written as null. */
bool mix_json_set_seed(json_t *object, uint64_t seed);
/* Some classes of Keras 3 take no `trainable` and save a dtype name instead of a policy. Adapts a config to
 * that rule: removes `trainable` and writes the dtype's name. */
bool mix_config_without_trainable(mix_layer *layer, mix_config *config);

/* ---- shapes ---- */

/* output_shape of layers that keep the input's shape. */
mix_shape mix_layer_same_shape(mix_layer *layer, int count, const mix_shape *input_shapes);
/* Resolves axes for a tensor of that rank and sorts them; an empty list means the last axis. False with a
 * ValueError for an axis that is out of range or given twice. */
bool mix_layer_axes(const mix_layer *layer, mix_axes given, int rank, mix_axes *axes);
/* All axes of that rank except these. */
mix_axes mix_other_axes(mix_axes axes, int rank);
/* The sizes along the axes. in_place: with the shape's rank, and 1 along all other axes. */
mix_shape mix_shape_of_axes(mix_shape shape, mix_axes axes, bool in_place);
/* A reshape that allows several unknown dimensions in a symbolic tensor. */
mix_tensor *mix_layer_reshape(mix_tensor *x, mix_shape shape);
/* x, cast to the layer's compute dtype if it is not floating-point. */
mix_tensor *mix_layer_floating(const mix_layer *layer, mix_tensor *x);
/* The mask of the only input, or NULL. */
mix_tensor *mix_call_mask(const mix_call_args *args);
/* compute_mask of layers whose results have no mask, even if the result is the input itself. */
mix_tensor *mix_no_mask(mix_layer *layer, const mix_call_args *args);
/* A list of one result; NULL for NULL. */
static inline mix_list *mix_one_result(mix_tensor *y) { return y ? mix_list_of(y) : NULL; }

/* The object if given, else the initializer of that name, else of the default name. Scoped. */
mix_initializer *mix_initializer_or(const char *name, mix_initializer *object, const char *default_name,
                                    const char *call);

/* ---- noise ---- */

/* Dropout: drops elements of x with probability `rate` and scales the others by 1 / (1 - rate). The decision
 * is shared along axes where the noise shape is 1. */
mix_tensor *mix_dropped(mix_tensor *x, double rate, mix_shape noise_shape, mix_generator *generator);
/* x's shape with the dimensions that `given` fixes (rank 0: none). False with a ValueError if the ranks
 * differ. */
bool mix_noise_shape(const mix_layer *layer, mix_shape given, mix_shape shape, mix_shape *noise_shape);
/* Ends a constructor: returns the layer, scoped. If an error is recorded, releases the layer and returns
 * NULL. */
mix_layer *mix_layer_made(mix_layer *layer);
/* A new generator, added to the layer (mix_layer_add_generator). Seed 0: a fresh seed. Borrowed. */
mix_generator *mix_layer_generator(mix_layer *layer, uint64_t seed);

/* ---- categories ---- */

typedef enum mix_category_mode {
  MIX_CATEGORY_INT,
  MIX_CATEGORY_ONE_HOT,
  MIX_CATEGORY_MULTI_HOT,
  MIX_CATEGORY_COUNT
} mix_category_mode;
/* The mode of that name, among those from `first` on. False with a ValueError that lists them. */
bool mix_category_mode_named(const char *name, mix_category_mode first, const char *call,
                             mix_category_mode *mode);
const char *mix_category_mode_name(mix_category_mode mode);
/* ids (..., n) of an integer dtype -> (..., depth), or (..., n, depth) for one_hot if n is not 1. weights:
 * NULL, or of the ids' shape. */
mix_tensor *mix_encode_categories(mix_tensor *ids, mix_category_mode mode, int64_t depth, mix_tensor *weights,
                                  mix_dtype dtype);

#endif
