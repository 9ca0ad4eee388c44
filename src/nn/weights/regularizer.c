/* Regularisers: penalties on weights (docs/spec/keras.md, section 9). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/config.h"
#include "nn/unknown.h"
#include "nn/weights/weights.h"
#include <math.h>
#include <mixtape/ops.h>
#include <string.h>

typedef enum penalty_kind { L1, L2, L1_L2, ORTHOGONAL } penalty_kind;

struct mix_regularizer {
  mix_object object;
  penalty_kind kind;
  double l1, l2, factor;
  bool columns;
  mix_tensor *(*function)(void *context, mix_tensor *weight); /* a user's function, instead of a kind */
  void *context;
};
const mix_class mix_regularizer_class = {.name = "regularizer"};

static const struct {
  const char *name, *class_name;
  penalty_kind kind;
} kinds[] = {{"l1", "L1", L1},
             {"l2", "L2", L2},
             {"l1_l2", "L1L2", L1_L2},
             {"orthogonal_regularizer", "OrthogonalRegularizer", ORTHOGONAL}};

mix_regularizer *mix_regularizer_with(const mix_regularizer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_regularizer_options, o, options, "regularizer");
  size_t row = 0, count = sizeof kinds / sizeof *kinds;
  if (o.regularizer && o.function)
    return mix_fail(MIX_VALUE_ERROR, "regularizer: both a name and a function were given; give one");
  while (!o.function && row < count &&
         !(o.regularizer &&
           (!strcmp(kinds[row].name, o.regularizer) || !strcmp(kinds[row].class_name, o.regularizer))))
    row++;
  if (row == count) return mix_unknown_name("regularizer", o.regularizer, kinds);
  bool both = !o.function && kinds[row].kind == L1_L2, given = o.l1 != 0 || o.l2 != 0;
  double default_value = both ? (given ? 0 : mix_semantics_or_current(o.semantics)->l1_l2_default) : 0.01;
  double l1 = mix_option_number(o.l1, default_value), l2 = mix_option_number(o.l2, default_value),
         factor = mix_option_number(o.factor, 0.01);
  if (!(l1 >= 0 && isfinite(l1) && l2 >= 0 && isfinite(l2) && isfinite(factor)))
    return mix_fail(MIX_VALUE_ERROR,
                    "regularizer: l1 is %g, l2 is %g; expected finite numbers that are not negative", l1, l2);
  bool columns = o.mode && !strcmp(o.mode, "columns");
  if (o.mode && !columns && strcmp(o.mode, "rows"))
    return mix_fail(MIX_VALUE_ERROR, "regularizer: mode '%.60s' is not known; expected rows or columns",
                    o.mode);
  mix_regularizer *regularizer = mix_object_new(sizeof *regularizer, &mix_regularizer_class);
  if (!regularizer) return NULL;
  *regularizer = (mix_regularizer){.object = regularizer->object,
                                   .kind = o.function ? L1 : kinds[row].kind,
                                   .l1 = l1,
                                   .l2 = l2,
                                   .factor = factor,
                                   .columns = columns,
                                   .function = o.function,
                                   .context = o.context};
  return mix_scoped(regularizer);
}

const char *mix_regularizer_name(const mix_regularizer *regularizer) {
  return regularizer && !regularizer->function ? kinds[regularizer->kind].name : NULL;
}

static mix_tensor *scaled_sum(mix_tensor *x, double factor) {
  mix_tensor *sum = mix_reduce_sum(x, MIX_ALL_AXES, false);
  return mix_multiply(mix_scalar_like(sum, factor), sum);
}

/* The mean absolute cosine between pairs of rows (columns), each pair counted once. */
static mix_tensor *orthogonal_penalty(const mix_regularizer *regularizer, mix_tensor *weight) {
  mix_shape shape = mix_tensor_shape(weight);
  if (shape.rank != 2)
    return mix_fail(MIX_VALUE_ERROR, "orthogonal_regularizer: the weight has rank %d; expected a matrix",
                    shape.rank);
  bool columns = regularizer->columns;
  double n = (double)shape.dims[columns ? 1 : 0], pairs = n * (n - 1) / 2;
  mix_tensor *length = mix_reduce_sum(mix_square(weight), MIX_AXES(columns ? 0 : 1), true);
  mix_tensor *unit = mix_multiply(weight, mix_rsqrt(mix_maximum(length, mix_scalar_like(length, 1e-12))));
  mix_tensor *products = mix_matmul(unit, unit, columns, !columns);
  mix_tensor *index = mix_range(0, n, 1, MIX_INT64);
  mix_tensor *off_diagonal = mix_not_equal(mix_expand_dims(index, 0), mix_expand_dims(index, 1));
  mix_tensor *cosines = mix_multiply(mix_abs(products), mix_cast(off_diagonal, mix_tensor_dtype(weight)));
  return scaled_sum(cosines, pairs > 0 ? regularizer->factor * 0.5 / pairs : 0);
}

mix_tensor *mix_regularizer_call(mix_regularizer *regularizer, mix_tensor *weight) {
  if (!mix_given(regularizer, "regularizer_call", "a regularizer") ||
      !mix_given(weight, "regularizer_call", "a weight"))
    return NULL;
  if (regularizer->function)
    return mix_returned(regularizer->function(regularizer->context, weight), "regularizer");
  switch (regularizer->kind) {
  case L1: return scaled_sum(mix_abs(weight), regularizer->l1);
  case L2: return scaled_sum(mix_square(weight), regularizer->l2);
  case ORTHOGONAL: return orthogonal_penalty(regularizer, weight);
  case L1_L2: break;
  }
  mix_tensor *penalty = mix_scalar_like(weight, 0);
  if (regularizer->l1) penalty = mix_add(penalty, scaled_sum(mix_abs(weight), regularizer->l1));
  if (regularizer->l2) penalty = mix_add(penalty, scaled_sum(mix_square(weight), regularizer->l2));
  return penalty;
}

mix_regularizer *mix_regularizer_choose(const char *name, mix_regularizer *object,
                                        const mix_semantics *semantics, const char *call) {
  if (mix_failed()) return NULL;
  if (name && object)
    return mix_fail(MIX_VALUE_ERROR, "%s: both the regularizer '%.60s' and an object were given; give one",
                    call, name);
  return object ? object : name ? mix_regularizer_new(name, .semantics = semantics) : NULL;
}

json_t *mix_regularizer_to_json(const mix_regularizer *regularizer) {
  if (!regularizer || regularizer->function) return json_null();
  json_t *config = json_object();
  bool good = config != NULL;
  if (regularizer->kind == L1 || regularizer->kind == L1_L2)
    good = mix_json_set(config, "l1", json_real(regularizer->l1));
  if (good && (regularizer->kind == L2 || regularizer->kind == L1_L2))
    good = mix_json_set(config, "l2", json_real(regularizer->l2));
  if (good && regularizer->kind == ORTHOGONAL)
    good = mix_json_set(config, "factor", json_real(regularizer->factor)) &&
           mix_json_set(config, "mode", json_string(regularizer->columns ? "columns" : "rows"));
  if (!good) {
    json_decref(config);
    return NULL;
  }
  return json_pack("{s:s,s:s,s:o,s:n}", "module", "keras.regularizers", "class_name",
                   kinds[regularizer->kind].class_name, "config", config, "registered_name");
}

mix_regularizer *mix_regularizer_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_regularizer_new(json_string_value(json), .semantics = semantics);
  const json_t *config = json_object_get(json, "config");
  mix_regularizer_options o = {
      .size = sizeof o, .regularizer = mix_json_string_or(json, "class_name", ""), .semantics = semantics};
  o.l1 = mix_json_number_or(config, "l1", 0);
  o.l2 = mix_json_number_or(config, "l2", 0);
  o.factor = mix_json_number_or(config, "factor", 0.01);
  o.mode = mix_json_string_or(config, "mode", NULL);
  if (o.l1 == 0) o.l1 = MIX_ZERO;
  if (o.l2 == 0) o.l2 = MIX_ZERO;
  return mix_failed() ? NULL : mix_regularizer_with(&o);
}
