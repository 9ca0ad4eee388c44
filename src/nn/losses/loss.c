/* Losses: dtypes, alignment, weights, masks and reductions (docs/spec/keras.md, 10.1). */
#include "nn/losses/loss.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "distribute/distribute.h"
#include "nn/keep.h"
#include "nn/layers/moments.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- options ---- */

#define FIELD(member) MIX_FIELD(mix_loss_options, member)
#define NUMBER(member, value)                                                                                \
  { FIELD(member), &mix_field_number, .number = value }
#define LOGITS                                                                                               \
  { FIELD(from_logits), &mix_field_boolean }
#define SMOOTHING                                                                                            \
  { FIELD(label_smoothing), &mix_field_number, .range = MIX_UNIT_INTERVAL }
#define AXIS                                                                                                 \
  { FIELD(axis), &mix_field_axis }
static const mix_field_row common_fields[] = {
    {FIELD(name), &mix_field_text}, {FIELD(reduction), &mix_field_text}, {0}};
static const mix_field_row huber_fields[] = {NUMBER(delta, 1), {0}};
/* Keras's configs of these lack the options. */
#define HIDDEN_AXIS                                                                                          \
  { FIELD(axis), &mix_field_axis, .except = MIX_ALWAYS }
static const mix_field_row similarity_fields[] = {HIDDEN_AXIS, {0}};
static const mix_field_row chosen_fields[] = {
    {FIELD(label_smoothing), &mix_field_number, .range = MIX_UNIT_INTERVAL, .except = MIX_ALWAYS},
    HIDDEN_AXIS,
    {0}};
static const mix_field_row crossentropy_fields[] = {LOGITS, SMOOTHING, AXIS, {0}};
static const mix_field_row binary_focal_fields[] = {LOGITS,
                                                    SMOOTHING,
                                                    AXIS,
                                                    NUMBER(gamma, 2),
                                                    NUMBER(alpha, 0.25),
                                                    {FIELD(apply_class_balancing), &mix_field_boolean},
                                                    {0}};
static const mix_field_row focal_fields[] = {LOGITS,           SMOOTHING,           AXIS,
                                             NUMBER(gamma, 2), NUMBER(alpha, 0.25), {0}};
static const mix_field_row sparse_fields[] = {
    LOGITS,
    HIDDEN_AXIS,
    {FIELD(ignore_class), &mix_field_flagged, .other = offsetof(mix_loss_options, has_ignore_class)},
    {0}};
static const mix_field_row dice_fields[] = {{FIELD(axis), &mix_field_axis, .optional = true}, {0}};
static const mix_field_row tversky_fields[] = {
    NUMBER(alpha, 0.5), NUMBER(beta, 0.5), {FIELD(axis), &mix_field_axis, .optional = true}, {0}};
static const mix_field_row circle_fields[] = {
    NUMBER(gamma, 80),
    NUMBER(margin, 0.4),
    {"remove_diagonal", offsetof(mix_loss_options, keep_diagonal), &mix_field_negated},
    {0}};
static const mix_field_row generalized_fields[] = {
    {FIELD(q), &mix_field_number, .number = 0.5, .range = MIX_BETWEEN_0_AND_1}, {0}};

#define LOSS(name, class_name, ...)                                                                          \
  { #name, class_name, .function = mix_loss_##name, __VA_ARGS__ }
/* The last row has no name. */
static const mix_loss_kind kinds[] = {
    LOSS(mean_squared_error, "MeanSquaredError", .aliases = {"mse"}),
    LOSS(mean_absolute_error, "MeanAbsoluteError", .aliases = {"mae"}),
    LOSS(mean_absolute_percentage_error, "MeanAbsolutePercentageError", .aliases = {"mape"}),
    LOSS(mean_squared_logarithmic_error, "MeanSquaredLogarithmicError", .aliases = {"msle"}),
    LOSS(huber, "Huber", .aliases = {"huber_loss"}, .fields = huber_fields),
    LOSS(log_cosh, "LogCosh", .aliases = {"logcosh"}),
    LOSS(cosine_similarity, "CosineSimilarity", .fields = similarity_fields),
    LOSS(hinge, "Hinge"),
    LOSS(squared_hinge, "SquaredHinge"),
    LOSS(categorical_hinge, "CategoricalHinge"),
    LOSS(kl_divergence, "KLDivergence", .aliases = {"kld", "kullback_leibler_divergence"}),
    LOSS(poisson, "Poisson"),
    LOSS(binary_crossentropy, "BinaryCrossentropy", .aliases = {"bce"}, .fields = crossentropy_fields),
    LOSS(binary_focal_crossentropy, "BinaryFocalCrossentropy", .fields = binary_focal_fields),
    LOSS(categorical_crossentropy, "CategoricalCrossentropy", .fields = crossentropy_fields),
    LOSS(sparse_categorical_crossentropy, "SparseCategoricalCrossentropy", .fields = sparse_fields,
         .integer_labels = true),
    LOSS(categorical_focal_crossentropy, "CategoricalFocalCrossentropy", .fields = focal_fields),
    LOSS(crossentropy, "crossentropy", .aliases = {"ce"}, .fields = chosen_fields, .keras3_only = true,
         .integer_labels = true),
    LOSS(dice, "Dice", .fields = dice_fields, .keras3_only = true),
    LOSS(tversky, "Tversky", .fields = tversky_fields, .keras3_only = true),
    LOSS(circle, "Circle", .fields = circle_fields, .keras3_only = true, .integer_labels = true),
    LOSS(ctc, "CTC", .keras3_only = true, .integer_labels = true),
    LOSS(categorical_generalized_cross_entropy, "CategoricalGeneralizedCrossEntropy",
         .fields = generalized_fields, .keras3_only = true, .integer_labels = true),
    {0}};

static void finalize(void *object) {}
static const char *name_of(const void *object) { return ((const mix_loss *)object)->name; }
const mix_class mix_loss_class = {.name = "loss", .finalize = finalize, .name_of = name_of};

/* Matches "MSE" and "mse", not "Mse". */
static bool alias_matches(const char *alias, const char *name) {
  if (!strcmp(alias, name)) return true;
  for (; *alias && *name; alias++, name++)
    if (toupper((unsigned char)*alias) != *name) return false;
  return !*alias && !*name;
}

static bool kind_matches(const mix_loss_kind *kind, const char *name) {
  if (!strcmp(kind->name, name) || !strcmp(kind->class_name, name)) return true;
  for (size_t i = 0; i < sizeof kind->aliases / sizeof *kind->aliases && kind->aliases[i]; i++)
    if (alias_matches(kind->aliases[i], name)) return true;
  return false;
}

static bool known_here(const mix_loss_kind *kind, const mix_semantics *semantics) {
  return !kind->keras3_only || semantics->loss_names_all;
}

const mix_loss_kind *mix_loss_kind_named(const char *name, const mix_semantics *semantics) {
  for (const mix_loss_kind *kind = kinds; name && kind->name; kind++)
    if (kind_matches(kind, name)) return known_here(kind, semantics) ? kind : NULL;
  return NULL;
}

void mix_loss_names_try(mix_did_you_mean *nearest, const mix_semantics *semantics) {
  for (const mix_loss_kind *kind = kinds; kind->name; kind++) {
    if (!known_here(kind, semantics)) continue;
    mix_did_you_mean_try(nearest, kind->name);
    mix_did_you_mean_try(nearest, kind->class_name);
    for (size_t i = 0; i < sizeof kind->aliases / sizeof *kind->aliases && kind->aliases[i]; i++)
      mix_did_you_mean_try(nearest, kind->aliases[i]);
  }
}

static void *unknown(const char *name, const mix_semantics *semantics) {
  mix_did_you_mean nearest = {.word = name};
  char hint[100], list[1024];
  mix_text known = {.text = list, .size = sizeof list};
  mix_loss_names_try(&nearest, semantics);
  if (nearest.found)
    return mix_fail_value("loss: '%.60s' is not known to %s%s", name, semantics->name,
                          mix_did_you_mean_hint(&nearest, hint, sizeof hint));
  for (const mix_loss_kind *kind = kinds; kind->name; kind++)
    if (known_here(kind, semantics)) mix_text_put(&known, "%s%s", known.used ? ", " : "", kind->name);
  return mix_fail_value("loss: '%.60s' is not known to %s; known: %s", name, semantics->name, list);
}

/* The names of mix_reduction in configs. */
static const char *const reductions[] = {"sum_over_batch_size", "sum", "none", "mean_with_sample_weight"};

static bool reduction_of(const char *name, const mix_semantics *semantics, mix_reduction *reduction) {
  static const struct {
    const char *name;
    mix_reduction reduction;
    int where; /* 1: tf_keras and experimental; 2: keras3; 3: all */
  } rows[] = {{"sum_over_batch_size", MIX_REDUCTION_SUM_OVER_BATCH_SIZE, 3},
              {"auto", MIX_REDUCTION_SUM_OVER_BATCH_SIZE, 3},
              {"mean", MIX_REDUCTION_SUM_OVER_BATCH_SIZE, 2},
              {"sum", MIX_REDUCTION_SUM, 3},
              {"none", MIX_REDUCTION_NONE, 3},
              {"mean_with_sample_weight", MIX_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name) && rows[i].where & (semantics->mean_with_sample_weight ? 2 : 1)) {
      *reduction = rows[i].reduction;
      return true;
    }
  return mix_fail_value("loss: reduction '%.60s' is not known; expected sum_over_batch_size, sum or none%s",
                        name, semantics->mean_with_sample_weight ? ", mean or mean_with_sample_weight" : "");
}

mix_loss *mix_loss_with(const mix_loss_options *options) {
  MIX_OPTIONS(mix_loss_options, o, options, "loss");
  const mix_semantics *semantics = mix_semantics_or_current(o.semantics);
  if (o.loss && o.function)
    return mix_fail_value("loss: both the name '%.60s' and a function were given; give one", o.loss);
  const mix_loss_kind *kind = o.function ? NULL : mix_loss_kind_named(o.loss, semantics);
  if (!kind && !o.function) return unknown(o.loss ? o.loss : "NULL", semantics);
  char call[80];
  snprintf(call, sizeof call, "loss %s", kind ? kind->name : "function");
  if (!mix_fields_resolve(&(mix_fields){common_fields, kind ? kind->fields : NULL, call, semantics}, &o))
    return NULL;
  mix_dtype dtype = o.dtype ? mix_dtype_from_name(o.dtype) : mix_floatx();
  if (!mix_dtype_is_floating(dtype))
    return mix_fail_value("loss: the dtype is '%.60s'; expected a floating-point dtype", o.dtype);
  mix_reduction reduction = MIX_REDUCTION_SUM_OVER_BATCH_SIZE;
  if (o.reduction && !reduction_of(o.reduction, semantics, &reduction)) return NULL;
  mix_loss *loss = mix_object_new(sizeof *loss, &mix_loss_class);
  if (!loss) return NULL;
  loss->kind = kind;
  loss->semantics = semantics;
  loss->dtype = dtype;
  loss->reduction = reduction;
  loss->options = o;
  loss->options.loss = kind ? kind->name : NULL; /* the caller's strings may go out of scope */
  loss->options.dtype = NULL;
  loss->options.reduction = reductions[reduction];
  loss->options.name = loss->name = o.name ? o.name : mix_intern(kind ? kind->name : "loss");
  if (loss->name) return mix_scoped(loss);
  mix_release(loss);
  return NULL;
}

const char *mix_loss_name(const mix_loss *loss) { return mix_is(loss, &mix_loss_class) ? loss->name : NULL; }

/* If one tensor has one extra dimension, and it is a last dimension of 1, squeezes it. keras3 expands a
 * vector to (batch, 1) instead. */
static void align_ranks(const mix_semantics *semantics, mix_tensor **a, mix_tensor **b) {
  mix_tensor **lower = mix_tensor_shape(*a).rank < mix_tensor_shape(*b).rank ? a : b,
             **higher = lower == a ? b : a;
  mix_shape low = mix_tensor_shape(*lower), high = mix_tensor_shape(*higher);
  if (high.rank != low.rank + 1 || high.dims[high.rank - 1] != 1) return;
  if (low.rank == 1 && semantics->loss_expands_vectors)
    *lower = mix_expand_dims(*lower, -1);
  else
    *higher = mix_squeeze(*higher, MIX_AXES(-1));
}

mix_tensor *mix_loss_values(mix_loss *loss, mix_tensor *y_true, mix_tensor *y_pred) {
  if (mix_failed() || !loss || !y_true || !y_pred) return NULL;
  if (!mix_loss_takes_class_numbers(loss)) align_ranks(loss->semantics, &y_true, &y_pred);
  if (mix_failed()) return NULL;
  if (!loss->kind)
    return mix_returned(loss->options.function(loss->options.context, y_true, y_pred), loss->name);
  if (!loss->kind->integer_labels) y_true = mix_cast(y_true, mix_tensor_dtype(y_pred));
  return mix_failed() ? NULL : loss->kind->function(loss, y_true, y_pred);
}

static mix_tensor *aligned(mix_tensor *values, mix_tensor *weights) {
  if (!weights) return NULL;
  mix_shape have = mix_tensor_shape(weights), want = mix_tensor_shape(values);
  if (have.rank == want.rank + 1 && have.dims[have.rank - 1] == 1) return mix_squeeze(weights, MIX_AXES(-1));
  while (weights && have.rank && have.rank < want.rank) {
    weights = mix_expand_dims(weights, -1);
    have.rank++;
  }
  return weights;
}

mix_tensor *mix_align_weights(mix_tensor *values, mix_tensor *weights) {
  return values && weights ? aligned(values, mix_cast(weights, mix_tensor_dtype(values))) : NULL;
}

/* ---- reduction ---- */

static mix_tensor *sum_of(mix_tensor *values) {
  return mix_kept(mix_reduce_sum(values, MIX_ALL_AXES, false));
}
/* The number of elements on all ranks. */
static mix_tensor *count_of(mix_tensor *values, mix_dtype dtype) {
  return mix_all_reduce(mix_scalar((double)mix_shape_size(mix_tensor_shape(values)), dtype));
}
/* This rank's part of the mean over all ranks: summed over them, losses and gradients are those of one
 * process. */
static mix_tensor *part_of_mean(mix_tensor *values) {
  const mix_dtype dtype = mix_tensor_dtype(values), wide = mix_widened(dtype);
  mix_tensor *sum = sum_of(mix_cast(values, wide));
  return mix_cast(mix_kept(mix_divide(sum, count_of(values, wide))), dtype);
}

/* A loss that is one value for the whole batch: the values of the ranks count by their rows. A rank without
 * rows has a value that is not finite, perhaps, and adds 0, to which its predictions lead all the same: each
 * rank must find gradients for the same variables. */
static mix_tensor *by_rows(mix_tensor *value, mix_tensor *predictions) {
  const mix_dtype dtype = mix_tensor_dtype(value), wide = mix_widened(dtype);
  const int64_t rows = mix_tensor_shape(predictions).dims[0];
  mix_tensor *own = mix_scalar((double)rows, wide), *all = mix_all_reduce(own);
  mix_tensor *sum = rows ? mix_multiply(mix_cast(value, wide), own) : sum_of(mix_cast(predictions, wide));
  return mix_cast(mix_kept(mix_divide(sum, all)), dtype);
}

/* The mean of all elements; 0 if there are none. The sum is accumulated in float32, so that a float16 loss
 * of many samples stays finite. */
static mix_tensor *mean_of(mix_tensor *values) {
  if (mix_is_distributed()) return part_of_mean(values);
  if (!mix_shape_size(mix_tensor_shape(values))) return mix_scalar(0, mix_tensor_dtype(values));
  return mix_kept(mix_reduce_mean(values, MIX_ALL_AXES, false));
}

/* a / b, 0 where b is 0 */
static mix_tensor *divide_no_nan(mix_tensor *a, mix_tensor *b) {
  mix_tensor *none = mix_kept(mix_equal(b, mix_scalar_like(b, 0)));
  mix_tensor *quotient = mix_kept(mix_divide(a, mix_kept(mix_select(none, mix_scalar_like(b, 1), b))));
  return mix_kept(mix_select(none, mix_scalar_like(quotient, 0), quotient));
}

/* The AND of the predictions' mask and the values' mask (ignore_class); NULL if there is neither. */
static mix_tensor *mask_of(mix_tensor *values, mix_tensor *predictions) {
  predictions = predictions ? aligned(values, mix_cast(predictions, MIX_BOOL)) : NULL;
  return predictions && values->mask ? mix_logical_and(predictions, values->mask)
         : predictions               ? predictions
                                     : values->mask;
}

/* The mask as weights. For the mean over the batch, valid entries weigh total / valid, which gives the mean
 * of the valid ones. */
static mix_tensor *mask_weights(const mix_loss *loss, mix_tensor *values, mix_tensor *mask) {
  mix_dtype wide = mix_widened(mix_tensor_dtype(values));
  mix_tensor *valid = mix_cast(mask, wide);
  if (!valid) return NULL;
  if (loss->reduction == MIX_REDUCTION_SUM_OVER_BATCH_SIZE) {
    mix_tensor *total = count_of(valid, wide), *all = mix_all_reduce(sum_of(valid));
    valid = mix_kept(mix_multiply(valid, divide_no_nan(total, all)));
  }
  return mix_cast(valid, mix_tensor_dtype(values));
}

static mix_tensor *reduce(const mix_loss *loss, mix_tensor *values, mix_tensor *weights,
                          mix_tensor *predictions) {
  mix_tensor *weighted = weights ? mix_kept(mix_multiply(values, weights)) : values;
  if (!weighted) return NULL;
  const bool single = !mix_tensor_shape(weighted).rank && mix_tensor_shape(predictions).rank;
  if (single && mix_is_distributed() && loss->reduction != MIX_REDUCTION_NONE &&
      loss->reduction != MIX_REDUCTION_SUM)
    return by_rows(weighted, predictions);
  switch (loss->reduction) {
  case MIX_REDUCTION_NONE: return weighted;
  case MIX_REDUCTION_SUM: return sum_of(weighted);
  case MIX_REDUCTION_SUM_OVER_BATCH_SIZE: return mean_of(weighted);
  case MIX_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT: break;
  }
  /* A single value has no weighted mean. */
  if (!weights || !mix_tensor_shape(weighted).rank) return mean_of(weighted);
  /* The sum of the weights before any broadcast. */
  return divide_no_nan(sum_of(weighted), mix_all_reduce(sum_of(weights)));
}

/* tf_keras: vector labels with predictions (batch, 1) give one value for the whole batch, which sample
 * weights do not fit. */
static bool weights_fit(const mix_loss *loss, mix_tensor *values, mix_tensor *weights) {
  mix_shape have = mix_tensor_shape(weights), want = mix_tensor_shape(values);
  if (loss->semantics->loss_expands_vectors || have.rank != want.rank + 1) return true;
  return mix_fail_value(
      "loss %s: weights have shape %s and the values of the loss %s; expected a weight for each value",
      loss->name, MIX_SHAPE_TEXT(have), MIX_SHAPE_TEXT(want));
}

mix_tensor *mix_loss_call_with(mix_loss *loss, mix_tensor *y_true, const mix_loss_call_options *options) {
  if (!mix_given(loss, &mix_loss_class, "loss_call", "a loss") ||
      !mix_given(y_true, &mix_tensor_class, "loss_call", "labels"))
    return NULL;
  MIX_OPTIONS(mix_loss_call_options, o, options, "loss_call");
  mix_tensor *y_pred = o.y_pred;
  if (!mix_given(y_pred, &mix_tensor_class, "loss_call", "predictions")) return NULL;
  if (loss->semantics->loss_in_floatx) {
    y_pred = mix_cast(y_pred, loss->dtype);
    if (!mix_dtype_is_integer(mix_tensor_dtype(y_true))) y_true = mix_cast(y_true, loss->dtype);
  }
  if (mix_failed()) return NULL;
  if (!mix_dtype_is_floating(mix_tensor_dtype(y_pred)))
    return mix_fail_type("loss %s: the predictions have dtype %s; expected a floating-point dtype",
                         loss->name, mix_dtype_name(mix_tensor_dtype(y_pred)));
  const char *scope = mix_graph_scope_set(loss->name);
  mix_tensor *values = mix_loss_values(loss, y_true, y_pred), *weights = NULL;
  mix_tensor *mask = values ? mask_of(values, o.mask ? o.mask : o.y_pred->mask) : NULL;
  if (values && o.sample_weight) weights = mix_align_weights(values, o.sample_weight);
  if (weights && !weights_fit(loss, values, weights)) weights = NULL;
  if (mask && !mix_failed()) {
    mix_tensor *valid = mask_weights(loss, values, mask);
    weights = weights ? mix_kept(mix_multiply(weights, valid)) : valid;
  }
  mix_tensor *result = mix_failed() || !values ? NULL : reduce(loss, values, weights, y_pred);
  mix_graph_scope_set(scope);
  return result;
}

/* ---- JSON ---- */

json_t *mix_loss_to_json(mix_loss *loss) {
  if (!loss || !loss->kind) return json_null();
  mix_fields fields = {common_fields, loss->kind->fields, "loss", loss->semantics};
  return mix_json_object("keras.losses", loss->kind->class_name,
                         mix_fields_write(&fields, &loss->options, NULL));
}

mix_loss *mix_loss_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_loss_new(json_string_value(json), .semantics = semantics);
  mix_loss_options o = {
      .size = sizeof o, .loss = mix_json_string_or(json, "class_name", ""), .semantics = semantics};
  const json_t *config = json_object_get(json, "config");
  const mix_loss_kind *kind = mix_loss_kind_named(o.loss, mix_semantics_or_current(semantics));
  mix_fields fields = {common_fields, kind ? kind->fields : NULL, "loss", semantics};
  if (mix_failed() || !mix_fields_read(&fields, config, &o)) return NULL;
  if (json_is_null(json_object_get(config, "reduction"))) o.reduction = "none"; /* Keras 3's None */
  return mix_loss_with(&o);
}
