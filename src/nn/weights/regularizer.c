/* Regularisers: penalties on weights (docs/spec/keras.md, section 9). */
#include "graph/node.h"
#include "nn/formulas.h"
#include "base/fields.h"
#include "base/json.h"
#include "nn/weights/named.h"
#include "nn/weights/weights.h"
#include <math.h>

#define FIELD(member) MIX_FIELD(mix_regularizer_options, member)
static const mix_field_row rows[] = {
    {FIELD(l1), &mix_field_number, 0.01},
    {FIELD(l2), &mix_field_number, 0.01},
    {FIELD(factor), &mix_field_number, 0.01},
    {FIELD(mode), &mix_field_text, .text = "rows", .choices = "rows|columns"},
    {NULL}};

typedef struct kind {
  const char *name, *class_name;
  mix_tensor *(*penalty)(const mix_regularizer_options *options, mix_tensor *weight);
  size_t in_use[3]; /* offsets of its rows, ended by 0 */
} kind;

struct mix_regularizer {
  mix_object object;
  const kind *kind; /* NULL: a user's function */
  mix_regularizer_options options;
};
static const mix_class regularizer_class = {.name = "regularizer"};

static mix_tensor *scaled_sum(mix_tensor *x, double factor) {
  mix_tensor *sum = mix_reduce_sum(x, MIX_ALL_AXES, false);
  return mix_multiply(mix_scalar_like(sum, factor), sum);
}

static mix_tensor *l1(const mix_regularizer_options *o, mix_tensor *weight) {
  return scaled_sum(mix_abs(weight), o->l1);
}
static mix_tensor *l2(const mix_regularizer_options *o, mix_tensor *weight) {
  return scaled_sum(mix_square(weight), o->l2);
}
static mix_tensor *l1_l2(const mix_regularizer_options *o, mix_tensor *weight) {
  mix_tensor *penalty = mix_scalar_like(weight, 0);
  if (o->l1) penalty = mix_add(penalty, l1(o, weight));
  return o->l2 ? mix_add(penalty, l2(o, weight)) : penalty;
}

/* The mean absolute cosine between pairs of rows (columns), each pair counted once. */
static mix_tensor *orthogonal(const mix_regularizer_options *o, mix_tensor *weight) {
  mix_shape shape = mix_tensor_shape(weight);
  if (shape.rank != 2)
    return mix_fail_value("orthogonal_regularizer: the weight has rank %d; expected a matrix", shape.rank);
  bool columns = !strcmp(o->mode, "columns");
  double n = (double)shape.dims[columns ? 1 : 0], pairs = n * (n - 1) / 2;
  mix_tensor *unit = mix_scale_to_unit(weight, MIX_AXES(columns ? 0 : 1), 1e-12);
  mix_tensor *products = mix_matmul(unit, unit, columns, !columns);
  mix_tensor *index = mix_range(0, n, 1, MIX_INT64);
  mix_tensor *off_diagonal = mix_not_equal(mix_expand_dims(index, 0), mix_expand_dims(index, 1));
  mix_tensor *cosines = mix_multiply(mix_abs(products), mix_cast(off_diagonal, mix_tensor_dtype(weight)));
  return scaled_sum(cosines, pairs > 0 ? o->factor * 0.5 / pairs : 0);
}

#define OFFSET(member) offsetof(mix_regularizer_options, member)
static const kind kinds[] = {
    {"l1", "L1", l1, {OFFSET(l1)}},
    {"l2", "L2", l2, {OFFSET(l2)}},
    {"l1_l2", "L1L2", l1_l2, {OFFSET(l1), OFFSET(l2)}},
    {"orthogonal_regularizer", "OrthogonalRegularizer", orthogonal, {OFFSET(factor), OFFSET(mode)}}};

/* The one that is not given is zero; if neither is, the generation says. */
static void fill_l1_l2(mix_regularizer_options *o) {
  double none = o->l1 != 0 || o->l2 != 0 ? 0 : mix_semantics_or_current(o->semantics)->l1_l2_default;
  if (none == 0) none = MIX_ZERO;
  if (o->l1 == 0) o->l1 = none;
  if (o->l2 == 0) o->l2 = none;
}

mix_regularizer *mix_regularizer_with(const mix_regularizer_options *options) {
  MIX_OPTIONS(mix_regularizer_options, o, options, "regularizer");
  if (o.regularizer && o.function)
    return mix_fail_value("regularizer: both a name and a function were given; give one");
  const kind *kind = o.function ? NULL : mix_find_named("regularizer", o.regularizer, kinds);
  if (!kind && !o.function) return NULL;
  if (kind && kind->penalty == l1_l2) fill_l1_l2(&o);
  if (!mix_fields_resolve(&(mix_fields){NULL, rows, "regularizer"}, &o)) return NULL;
  if (!(o.l1 >= 0 && isfinite(o.l1) && o.l2 >= 0 && isfinite(o.l2) && isfinite(o.factor)))
    return mix_fail_value("regularizer: l1 is %g, l2 is %g; expected finite numbers that are not negative",
                          o.l1, o.l2);
  mix_regularizer *regularizer = mix_object_new(sizeof *regularizer, &regularizer_class);
  if (!regularizer) return NULL;
  o.regularizer = NULL;
  regularizer->kind = kind;
  regularizer->options = o;
  return mix_scoped(regularizer);
}

const char *mix_regularizer_name(const mix_regularizer *regularizer) {
  return mix_is(regularizer, &regularizer_class) && regularizer->kind ? regularizer->kind->name : NULL;
}

mix_tensor *mix_regularizer_call(mix_regularizer *regularizer, mix_tensor *weight) {
  if (!mix_given(regularizer, &regularizer_class, "regularizer_call", "a regularizer") ||
      !mix_given(weight, &mix_tensor_class, "regularizer_call", "a weight"))
    return NULL;
  const mix_regularizer_options *o = &regularizer->options;
  return o->function ? mix_returned(o->function(o->context, weight), "regularizer")
                     : regularizer->kind->penalty(o, weight);
}

mix_regularizer *mix_regularizer_choose(const char *name, mix_regularizer *object,
                                        const mix_semantics *semantics, const char *call) {
  if (!mix_one_given("regularizer", name, object, call)) return NULL;
  if (object && !mix_given(object, &regularizer_class, call, "a regularizer")) return NULL;
  return object ? object : name ? mix_regularizer_new(name, .semantics = semantics) : NULL;
}

json_t *mix_regularizer_to_json(const mix_regularizer *regularizer) {
  const kind *kind = regularizer ? regularizer->kind : NULL;
  if (!kind) return json_null();
  mix_fields fields = {NULL, rows, "regularizer", .in_use = kind->in_use};
  return mix_json_object("keras.regularizers", kind->class_name,
                         mix_fields_write(&fields, &regularizer->options, NULL));
}

mix_regularizer *mix_regularizer_from_json(const json_t *json, const mix_semantics *semantics) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_regularizer_new(json_string_value(json), .semantics = semantics);
  mix_regularizer_options o = {.size = sizeof o,
                               .regularizer = mix_json_string_or(json, "class_name", ""),
                               .l1 = MIX_ZERO,
                               .l2 = MIX_ZERO,
                               .semantics = semantics};
  mix_fields fields = {NULL, rows, "regularizer"};
  return mix_fields_read(&fields, json_object_get(json, "config"), &o) ? mix_regularizer_with(&o) : NULL;
}
