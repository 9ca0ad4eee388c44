/* Constraints: projections of weights after an update (docs/spec/keras.md, section 9). */
#include "graph/node.h"
#include "base/json.h"
#include "nn/fields.h"
#include "nn/weights/named.h"
#include "nn/weights/weights.h"
#include "tensor/shape.h"

/* An axis, whose zero is the first one, or a list that goes to `axes`. */
static json_t *write_axis(const mix_field *field) {
  const mix_constraint_options *o = field->options;
  if (!o->axes.count) return json_integer(o->axis);
  json_t *list = json_array();
  for (int i = 0; i < o->axes.count; i++) mix_json_append(list, json_integer(o->axes.axis[i]));
  return list;
}
static bool read_axis(const mix_field *field, const json_t *value) {
  mix_constraint_options *o = field->options;
  if (json_is_null(value)) return true;
  const size_t count = json_is_array(value) ? json_array_size(value) : 0;
  if (!json_is_integer(value) && (count < 1 || count > MIX_MAX_RANK)) return mix_field_mistyped(field, value);
  if (json_is_integer(value) && !mix_field_read_axis(field, value, &o->axis)) return false;
  o->axes.count = (int)count;
  for (size_t i = 0; i < count; i++) {
    if (!mix_field_read_axis(field, json_array_get(value, i), &o->axes.axis[i])) return false;
  }
  return true;
}
static const mix_value_kind axis_kind = {
    "an integer or a list of them", sizeof(int), NULL, NULL, write_axis, read_axis, NULL};

#define FIELD(member) MIX_FIELD(mix_constraint_options, member)
static const mix_field_row rows[] = {{FIELD(min_value), &mix_field_number},
                                     {FIELD(rate), &mix_field_number, 1},
                                     {FIELD(max_value), &mix_field_number},
                                     {FIELD(axis), &axis_kind},
                                     {NULL}};

typedef enum projection { MAX_NORM, UNIT_NORM, NON_NEG, MIN_MAX_NORM, RADIAL } projection;

typedef struct kind {
  const char *name, *class_name;
  projection projection;
  double max_value; /* the default */
  size_t in_use[5]; /* offsets of its rows, ended by 0 */
} kind;

#define OFFSET(member) offsetof(mix_constraint_options, member)
static const kind kinds[] = {{"max_norm", "MaxNorm", MAX_NORM, 2, {OFFSET(max_value), OFFSET(axis)}},
                             {"unit_norm", "UnitNorm", UNIT_NORM, 1, {OFFSET(axis)}},
                             {"non_neg", "NonNeg", NON_NEG, 0, {0}},
                             {"min_max_norm",
                              "MinMaxNorm",
                              MIN_MAX_NORM,
                              1,
                              {OFFSET(min_value), OFFSET(rate), OFFSET(max_value), OFFSET(axis)}},
                             {"radial_constraint", "RadialConstraint", RADIAL, 0, {0}}};

struct mix_constraint {
  mix_object object;
  const kind *kind; /* NULL: a user's function */
  mix_constraint_options options;
};
static const mix_class constraint_class = {.name = "constraint"};

static const double epsilon = 1e-7;

mix_constraint *mix_constraint_with(const mix_constraint_options *options) {
  MIX_OPTIONS(mix_constraint_options, o, options, "constraint");
  if (o.constraint && o.function)
    return mix_fail_value("constraint: both a name and a function were given; give one");
  const kind *kind = o.function ? NULL : mix_find_named("constraint", o.constraint, kinds);
  if (!kind && !o.function) return NULL;
  if (o.axes.count < 0 || o.axes.count > MIX_MAX_RANK)
    return mix_fail_value("constraint: axes.count is %d; expected 0 to %d", o.axes.count, MIX_MAX_RANK);
  if (kind && o.max_value == 0) o.max_value = kind->max_value;
  if (!mix_fields_resolve(&(mix_fields){NULL, rows, "constraint"}, &o)) return NULL;
  mix_constraint *constraint = mix_object_new(sizeof *constraint, &constraint_class);
  if (!constraint) return NULL;
  o.constraint = NULL;
  constraint->kind = kind;
  constraint->options = o;
  return mix_scoped(constraint);
}

const char *mix_constraint_name(const mix_constraint *constraint) {
  return mix_is(constraint, &constraint_class) && constraint->kind ? constraint->kind->name : NULL;
}

/* Where on the diagonal of a square of `size` the value of a place comes from. The rings around the middle
 * have, from outside, the values 2 half - 1, 2 half - 2, ..., and the middle half - 1, as tf_keras counts
 * them. */
static int64_t radial_source(int64_t size, int64_t row, int64_t column) {
  const int64_t half = size / 2, r = row < size - 1 - row ? row : size - 1 - row,
                c = column < size - 1 - column ? column : size - 1 - column, ring = r < c ? r : c;
  return ring >= half - 1 + size % 2 ? half - 1 : 2 * half - 1 - ring;
}

/* A kernel (rows, columns, in, out) that is the same in each ring around the middle. */
static mix_tensor *radial(mix_tensor *weight) {
  const mix_shape shape = mix_tensor_shape(weight);
  const int64_t size = shape.dims[0];
  if (shape.rank != 4 || size != shape.dims[1] || size < 2)
    return mix_fail_value(
        "constraint: radial_constraint of a weight of shape %s; expected a kernel (size, size, "
        "inputs, outputs) of size 2 or more",
        MIX_SHAPE_TEXT(shape));
  int32_t *places = mix_scoped_memory(sizeof *places * (size_t)(size * size));
  for (int64_t i = 0; places && i < size * size; i++)
    places[i] = (int32_t)(radial_source(size, i / size, i % size) * (size + 1));
  if (!places) return NULL;
  mix_tensor *rows = mix_reshape(weight, MIX_SHAPE(size * size, shape.dims[2], shape.dims[3]));
  return mix_reshape(mix_gather(rows, mix_tensor_from(places, MIX_INT32, MIX_SHAPE(size * size)), 0), shape);
}

mix_tensor *mix_constraint_call(mix_constraint *constraint, mix_tensor *weight) {
  if (!mix_given(constraint, &constraint_class, "constraint_call", "a constraint") ||
      !mix_given(weight, &mix_tensor_class, "constraint_call", "a weight"))
    return NULL;
  const mix_constraint_options *o = &constraint->options;
  if (o->function) return mix_returned(o->function(o->context, weight), "constraint");
  const projection projection = constraint->kind->projection;
  if (projection == RADIAL) return radial(weight);
  if (projection == NON_NEG) return mix_maximum(weight, mix_scalar_like(weight, 0));
  mix_tensor *norm =
      mix_sqrt(mix_reduce_sum(mix_square(weight), o->axes.count ? o->axes : MIX_AXES(o->axis), true));
  mix_tensor *divisor = mix_add(mix_scalar_like(norm, epsilon), norm);
  if (projection == UNIT_NORM) return mix_divide(weight, divisor);
  double low = projection == MIN_MAX_NORM ? o->min_value : 0;
  mix_tensor *wanted = mix_clip(norm, mix_scalar_like(norm, low), mix_scalar_like(norm, o->max_value));
  if (projection == MIN_MAX_NORM)
    wanted = mix_add(mix_multiply(mix_scalar_like(norm, o->rate), wanted),
                     mix_multiply(mix_scalar_like(norm, 1 - o->rate), norm));
  return mix_multiply(weight, mix_divide(wanted, divisor));
}

mix_constraint *mix_constraint_choose(const char *name, mix_constraint *object, const char *call) {
  if (!mix_one_given("constraint", name, object, call)) return NULL;
  if (object && !mix_given(object, &constraint_class, call, "a constraint")) return NULL;
  return object ? object : name ? mix_constraint_new(name) : NULL;
}

json_t *mix_constraint_to_json(const mix_constraint *constraint) {
  const kind *kind = constraint ? constraint->kind : NULL;
  if (!kind) return json_null();
  mix_fields fields = {NULL, rows, "constraint", .in_use = kind->in_use};
  return mix_json_object("keras.constraints", kind->class_name,
                         mix_fields_write(&fields, &constraint->options, NULL));
}

mix_constraint *mix_constraint_from_json(const json_t *json) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_constraint_new(json_string_value(json));
  mix_constraint_options o = {.size = sizeof o, .constraint = mix_json_string_or(json, "class_name", "")};
  mix_fields fields = {NULL, rows, "constraint"};
  return mix_fields_read(&fields, json_object_get(json, "config"), &o) ? mix_constraint_with(&o) : NULL;
}
