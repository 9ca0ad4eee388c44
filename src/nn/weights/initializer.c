/* Initialisers (docs/spec/keras.md, section 9). */
#include "base/alloc.h"
#include "base/fields.h"
#include "base/float_modes.h"
#include "base/json.h"
#include "base/philox.h"
#include "graph/variable.h"
#include "nn/json_arrays.h"
#include "nn/weights/named.h"
#include "nn/weights/orthogonal.h"
#include "nn/weights/weights.h"
#include "ops/with_number.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/random.h>

typedef mix_tensor *(*draw)(const mix_initializer *initializer, mix_shape shape, mix_dtype dtype);
/* Of the weight that this thread draws, where they are not those of its shape. */
static _Thread_local mix_fans given_fans;

typedef struct kind {
  const char *name, *class_name;
  draw draw;
  bool random;
  const mix_field_row *rows;
  double scale; /* of a fixed variance scaling; 0: from the options */
  const char *mode, *distribution;
} kind;

struct mix_initializer {
  mix_object object;
  const kind *kind;
  mix_initializer_options options; /* with the seed that configs have; 0: none */
  uint64_t seed;                   /* the given one, or the derived one */
  json_t *array;                   /* of a constant in a config: lists of numbers, or an array; NULL: none */
};
static void finalize(void *object) { json_decref(((mix_initializer *)object)->array); }
static const mix_class initializer_class = {.name = "initializer", .finalize = finalize};

static mix_tensor *state_of(const mix_initializer *initializer) {
  int64_t state[2] = {(int64_t)initializer->seed, 0};
  return mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2));
}
/* x * factor + offset */
static mix_tensor *affine(mix_tensor *x, double factor, double offset) {
  if (factor != 1) x = mix_times(x, factor);
  return offset == 0 ? x : mix_plus(x, offset);
}

static mix_tensor *zeros(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return mix_fill(shape, 0, dtype);
}
static mix_tensor *ones(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return mix_fill(shape, 1, dtype);
}
static mix_tensor *constant(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  mix_json_numbers n;
  if (!i->array) return mix_fill(shape, i->options.value, dtype);
  if (mix_is_array_form(i->array))
    return mix_broadcast_to(mix_cast(mix_array_form_read(i->array, "initializer constant", "value"), dtype),
                            shape);
  if (!mix_json_numbers_read(i->array, &n))
    return mix_fail_type("initializer constant: value is a list; expected numbers in lists of one length");
  return mix_broadcast_to(mix_json_numbers_tensor(&n, dtype), shape);
}

static mix_tensor *identity(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  if (shape.rank != 2)
    return mix_fail_value("initializer identity: the shape has rank %d; expected a matrix", shape.rank);
  mix_tensor *rows = mix_expand_dims(mix_range(0, (double)shape.dims[0], 1, MIX_INT64), 1);
  mix_tensor *columns = mix_expand_dims(mix_range(0, (double)shape.dims[1], 1, MIX_INT64), 0);
  return affine(mix_cast(mix_equal(rows, columns), dtype), i->options.gain, 0);
}

static mix_tensor *random_normal(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return affine(mix_stateless_normal(state_of(i), shape, dtype), i->options.stddev, i->options.mean);
}
static mix_tensor *truncated_normal(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return affine(mix_stateless_truncated_normal(state_of(i), shape, dtype), i->options.stddev,
                i->options.mean);
}
static mix_tensor *random_uniform(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  double low = i->options.minval, high = i->options.maxval;
  return affine(mix_stateless_uniform(state_of(i), shape, dtype), high - low, low);
}

/* Keras's fan_in and fan_out: inputs per output, outputs per input. */
static void fans(mix_shape shape, double *in, double *out) {
  double receptive = 1;
  if (given_fans.in > 0) {
    *in = given_fans.in, *out = given_fans.out;
    return;
  }
  if (shape.rank < 2) {
    *in = *out = shape.rank ? (double)shape.dims[0] : 1;
    return;
  }
  for (int i = 0; i < shape.rank - 2; i++) receptive *= (double)shape.dims[i];
  *in = (double)shape.dims[shape.rank - 2] * receptive;
  *out = (double)shape.dims[shape.rank - 1] * receptive;
}

/* Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks (2010); He et
 * al., arXiv:1502.01852. */
static mix_tensor *variance_scaling(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  static const double truncated_deviation = 0.87962566103423978; /* of a standard normal truncated at +-2 */
  double in, out;
  const char *mode = i->options.mode, *distribution = i->options.distribution;
  fans(shape, &in, &out);
  double n = !strcmp(mode, "fan_in") ? in : !strcmp(mode, "fan_out") ? out : (in + out) / 2;
  double variance = i->options.scale / (n > 1 ? n : 1);
  if (!strcmp(distribution, "uniform")) {
    double limit = sqrt(3 * variance);
    return affine(mix_stateless_uniform(state_of(i), shape, dtype), 2 * limit, -limit);
  }
  if (!strcmp(distribution, "untruncated_normal"))
    return affine(mix_stateless_normal(state_of(i), shape, dtype), sqrt(variance), 0);
  return affine(mix_stateless_truncated_normal(state_of(i), shape, dtype),
                sqrt(variance) / truncated_deviation, 0);
}

/* Saxe et al.: Exact solutions to the nonlinear dynamics of learning in deep linear neural networks;
 * arXiv:1312.6120. */
static mix_tensor *orthogonal(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  if (shape.rank < 2)
    return mix_fail_value("initializer orthogonal: the shape has rank %d; expected at least 2", shape.rank);
  int64_t columns = shape.dims[shape.rank - 1], rows = 1;
  for (int d = 0; d < shape.rank - 1; d++) rows *= shape.dims[d];
  int64_t m = rows > columns ? rows : columns, n = rows > columns ? columns : rows;
  double *q = mix_calloc((size_t)(m * n), sizeof *q), *result = mix_calloc((size_t)(m * n), sizeof *result);
  mix_tensor *tensor = NULL;
  if (q && result &&
      !mix_tensor_read(mix_stateless_normal(state_of(i), MIX_SHAPE(m, n), MIX_FLOAT64), MIX_FLOAT64, q,
                       m * n) &&
      mix_orthonormalize(q, m, n)) {
    double gain = i->options.gain;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++)
        result[r * columns + c] = gain * (rows < columns ? q[c * n + r] : q[r * n + c]);
    tensor = mix_tensor_from_doubles(result, dtype, shape);
  }
  mix_free(q);
  mix_free(result);
  return tensor;
}

#define FIELD(member) MIX_FIELD(mix_initializer_options, member)
#define GAIN                                                                                                 \
  { FIELD(gain), &mix_field_number, 1 }
#define SEED                                                                                                 \
  { FIELD(seed), &mix_field_seed }
static const mix_field_row value_rows[] = {{FIELD(value), &mix_field_number}, {NULL}};
static const mix_field_row gain_rows[] = {GAIN, {NULL}};
static const mix_field_row orthogonal_rows[] = {GAIN, SEED, {NULL}};
#define AXES(name)                                                                                           \
  { name, 0, &mix_field_fixed, .text = "null", .only = MIX_RULE(config_newer_options) }
static const mix_field_row scaling_rows[] = {SEED, AXES("input_axes"), AXES("output_axes"), {NULL}};
static const mix_field_row normal_rows[] = {
    {FIELD(mean), &mix_field_number}, {FIELD(stddev), &mix_field_number, 0.05}, SEED, {NULL}};
static const mix_field_row uniform_rows[] = {
    {FIELD(minval), &mix_field_number}, {FIELD(maxval), &mix_field_number}, SEED, {NULL}};
static const mix_field_row variance_rows[] = {
    {FIELD(scale), &mix_field_number, 1, .range = MIX_POSITIVE},
    {FIELD(mode), &mix_field_text, .text = "fan_in", .choices = "fan_in|fan_out|fan_avg"},
    {FIELD(distribution), &mix_field_text, .text = "truncated_normal",
     .choices = "truncated_normal|untruncated_normal|uniform|normal"},
    SEED,
    AXES("input_axes"),
    AXES("output_axes"),
    {NULL}};

static const kind kinds[] = {
    {"zeros", "Zeros", zeros, false, NULL},
    {"ones", "Ones", ones, false, NULL},
    {"constant", "Constant", constant, false, value_rows},
    {"identity", "Identity", identity, false, gain_rows},
    {"random_normal", "RandomNormal", random_normal, true, normal_rows},
    {"random_uniform", "RandomUniform", random_uniform, true, uniform_rows},
    {"truncated_normal", "TruncatedNormal", truncated_normal, true, normal_rows},
    {"variance_scaling", "VarianceScaling", variance_scaling, true, variance_rows},
    {"glorot_uniform", "GlorotUniform", variance_scaling, true, scaling_rows, 1, "fan_avg", "uniform"},
    {"glorot_normal", "GlorotNormal", variance_scaling, true, scaling_rows, 1, "fan_avg", "truncated_normal"},
    {"he_uniform", "HeUniform", variance_scaling, true, scaling_rows, 2, "fan_in", "uniform"},
    {"he_normal", "HeNormal", variance_scaling, true, scaling_rows, 2, "fan_in", "truncated_normal"},
    {"lecun_uniform", "LecunUniform", variance_scaling, true, scaling_rows, 1, "fan_in", "uniform"},
    {"lecun_normal", "LecunNormal", variance_scaling, true, scaling_rows, 1, "fan_in", "truncated_normal"},
    {"orthogonal", "Orthogonal", orthogonal, true, orthogonal_rows},
    /* aliases */
    {"zeros", "zero"},
    {"ones", "one"},
    {"random_normal", "normal"},
    {"random_uniform", "uniform"},
};

static const kind *find_kind(const char *name) {
  const kind *found = mix_find_named("initializer", name, kinds);
  return found && !found->draw ? mix_find_named("initializer", found->name, kinds) : found;
}

mix_initializer *mix_initializer_with(const mix_initializer_options *options) {
  MIX_OPTIONS(mix_initializer_options, o, options, "initializer");
  const kind *kind = find_kind(o.initializer);
  if (!kind) return NULL;
  if (o.minval == 0 && o.maxval == 0) o.minval = -0.05, o.maxval = 0.05;
  if (kind->scale) o.scale = kind->scale, o.mode = kind->mode, o.distribution = kind->distribution;
  /* No other kind has a row that refuses a value. */
  if (!mix_fields_resolve(&(mix_fields){NULL, kind->rows, "initializer variance_scaling"}, &o)) return NULL;
  mix_initializer *initializer = mix_object_new(sizeof *initializer, &initializer_class);
  if (!initializer) return NULL;
  o.initializer = NULL;
  initializer->kind = kind;
  initializer->options = o;
  initializer->seed = o.seed || !kind->random ? o.seed : mix_next_seed();
  return mix_scoped(initializer);
}

const char *mix_initializer_name(const mix_initializer *initializer) {
  return mix_is(initializer, &initializer_class) ? initializer->kind->name : NULL;
}
uint64_t mix_initializer_seed(const mix_initializer *initializer) {
  return mix_is(initializer, &initializer_class) ? initializer->seed : 0;
}

mix_tensor *mix_initializer_call(mix_initializer *initializer, mix_shape shape, mix_dtype dtype) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_given(initializer, &initializer_class, "initializer_call", "an initializer")) return NULL;
  if (mix_shape_checked_size(shape) < 0)
    return mix_fail_value("initializer %s: %s is no shape that a weight can have", initializer->kind->name,
                          MIX_SHAPE_TEXT(shape));
  if (initializer->kind->random && !mix_dtype_is_floating(dtype))
    return mix_fail_value("initializer %s: the dtype is %s; expected a floating-point dtype",
                          initializer->kind->name, mix_dtype_name(dtype));
  /* Initial values are computed at once, outside any capture. */
  mix_capture *capture = mix_capture_set(NULL);
  mix_scope *scope = mix_scope_begin();
  mix_dtype drawn = initializer->kind->random && mix_dtype_size(dtype) == 2 ? MIX_FLOAT32 : dtype;
  mix_tensor *value = mix_cast(initializer->kind->draw(initializer, shape, drawn), dtype);
  if (value && mix_evaluate(1, &value)) value = NULL;
  mix_retain(value);
  mix_scope_end(scope);
  mix_capture_set(capture);
  return mix_scoped(value);
}

mix_tensor *mix_initializer_call_with_fans(mix_initializer *initializer, mix_shape shape, mix_dtype dtype,
                                           const mix_fans *fans) {
  given_fans = *fans;
  mix_tensor *value = mix_initializer_call(initializer, shape, dtype);
  given_fans = (mix_fans){0};
  return value;
}

mix_initializer *mix_initializer_choose(const char *name, mix_initializer *object, const char *call) {
  if (!mix_one_given("initializer", name, object, call)) return NULL;
  return object ? object : name ? mix_initializer_new(name) : NULL;
}

json_t *mix_initializer_to_json(const mix_initializer *initializer, const mix_semantics *semantics) {
  if (!initializer) return json_null();
  const kind *kind = initializer->kind;
  const mix_fields fields = {NULL, kind->rows, "initializer", semantics};
  json_t *config = mix_fields_write(&fields, &initializer->options, NULL);
  if (config && initializer->array) mix_json_set(config, "value", mix_json_copy(initializer->array));
  return mix_json_object("keras.initializers", kind->class_name, config);
}

/* An array in place of the number, as Constant(matrix) has it. */
static mix_initializer *constant_array(const mix_initializer_options *options, const json_t *value) {
  mix_initializer *initializer = mix_initializer_with(options);
  if (initializer && !(initializer->array = mix_json_copy(value))) return NULL;
  return initializer;
}

mix_initializer *mix_initializer_from_json(const json_t *json) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_initializer_new(json_string_value(json));
  mix_initializer_options o = {.size = sizeof o,
                               .initializer = mix_json_string_or(json, "class_name", ""),
                               .minval = -0.05,
                               .maxval = 0.05};
  const kind *kind = mix_failed() ? NULL : find_kind(o.initializer);
  mix_fields fields = {NULL, kind ? kind->rows : NULL, "initializer"};
  const json_t *value = json_object_get(json_object_get(json, "config"), "value");
  if (kind && kind->draw == constant && (json_is_array(value) || mix_is_array_form(value)))
    return constant_array(&o, value);
  return mix_fields_read(&fields, json_object_get(json, "config"), &o) ? mix_initializer_with(&o) : NULL;
}
