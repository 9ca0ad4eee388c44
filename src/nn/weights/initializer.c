/* Initialisers (docs/spec/keras.md, section 9). */
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "graph/variable.h"
#include "nn/config.h"
#include "nn/weights/orthogonal.h"
#include "nn/unknown.h"
#include "nn/weights/weights.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/random.h>
#include <string.h>

typedef mix_tensor *(*draw)(const mix_initializer *initializer, mix_shape shape, mix_dtype dtype);

typedef struct kind {
  const char *name, *class_name;
  draw draw;
  bool random;
  double scale; /* of a fixed variance scaling; 0: from the options */
  const char *mode, *distribution;
} kind;

struct mix_initializer {
  mix_object object;
  const kind *kind;
  mix_initializer_options options; /* its strings are constants */
  bool seeded;                     /* a seed was given and is saved in configs */
};
const mix_class mix_initializer_class = {.name = "initializer"};

static mix_tensor *state_of(const mix_initializer *initializer) {
  int64_t state[2] = {(int64_t)initializer->options.seed, 0};
  return mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2));
}
/* x * factor + offset */
static mix_tensor *affine(mix_tensor *x, double factor, double offset) {
  if (factor != 1) x = mix_multiply(x, mix_scalar_like(x, factor));
  return offset == 0 ? x : mix_add(x, mix_scalar_like(x, offset));
}

static mix_tensor *zeros(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  (void)i;
  return mix_fill(shape, 0, dtype);
}
static mix_tensor *ones(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  (void)i;
  return mix_fill(shape, 1, dtype);
}
static mix_tensor *constant(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return mix_fill(shape, i->options.value, dtype);
}

static mix_tensor *identity(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  if (shape.rank != 2)
    return mix_fail(MIX_VALUE_ERROR, "initializer identity: the shape has rank %d; expected a matrix",
                    shape.rank);
  double gain = mix_option_number(i->options.gain, 1);
  mix_tensor *rows = mix_expand_dims(mix_range(0, (double)shape.dims[0], 1, MIX_INT64), 1);
  mix_tensor *columns = mix_expand_dims(mix_range(0, (double)shape.dims[1], 1, MIX_INT64), 0);
  return affine(mix_cast(mix_equal(rows, columns), dtype), gain, 0);
}

static mix_tensor *random_normal(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return affine(mix_stateless_normal(state_of(i), shape, dtype), mix_option_number(i->options.stddev, 0.05),
                i->options.mean);
}
static mix_tensor *truncated_normal(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  return affine(mix_stateless_truncated_normal(state_of(i), shape, dtype),
                mix_option_number(i->options.stddev, 0.05), i->options.mean);
}
static mix_tensor *random_uniform(const mix_initializer *i, mix_shape shape, mix_dtype dtype) {
  bool defaults = i->options.minval == 0 && i->options.maxval == 0;
  double low = defaults ? -0.05 : mix_option_number(i->options.minval, 0),
         high = defaults ? 0.05 : mix_option_number(i->options.maxval, 0);
  return affine(mix_stateless_uniform(state_of(i), shape, dtype), high - low, low);
}

/* Keras's fan_in and fan_out: inputs per output, outputs per input. */
static void fans(mix_shape shape, double *in, double *out) {
  double receptive = 1;
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
  double in, out, scale = i->kind->scale ? i->kind->scale : mix_option_number(i->options.scale, 1);
  const char *mode = i->options.mode, *distribution = i->options.distribution;
  fans(shape, &in, &out);
  double n = !strcmp(mode, "fan_in") ? in : !strcmp(mode, "fan_out") ? out : (in + out) / 2;
  double variance = scale / (n > 1 ? n : 1);
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
    return mix_fail(MIX_VALUE_ERROR, "initializer orthogonal: the shape has rank %d; expected at least 2",
                    shape.rank);
  int64_t columns = shape.dims[shape.rank - 1], rows = 1;
  for (int d = 0; d < shape.rank - 1; d++) rows *= shape.dims[d];
  int64_t m = rows > columns ? rows : columns, n = rows > columns ? columns : rows;
  double *q = mix_calloc((size_t)(m * n), sizeof *q), *result = mix_calloc((size_t)(m * n), sizeof *result);
  mix_tensor *tensor = NULL;
  if (q && result &&
      !mix_tensor_read(mix_stateless_normal(state_of(i), MIX_SHAPE(m, n), MIX_FLOAT64), MIX_FLOAT64, q,
                       m * n) &&
      mix_orthonormalize(q, m, n)) {
    double gain = mix_option_number(i->options.gain, 1);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++)
        result[r * columns + c] = gain * (rows < columns ? q[c * n + r] : q[r * n + c]);
    tensor = mix_tensor_from_doubles(result, dtype, shape);
  }
  mix_free(q);
  mix_free(result);
  return tensor;
}

static const kind kinds[] = {
    {"zeros", "Zeros", zeros, false, 0, NULL, NULL},
    {"ones", "Ones", ones, false, 0, NULL, NULL},
    {"constant", "Constant", constant, false, 0, NULL, NULL},
    {"identity", "Identity", identity, false, 0, NULL, NULL},
    {"random_normal", "RandomNormal", random_normal, true, 0, NULL, NULL},
    {"random_uniform", "RandomUniform", random_uniform, true, 0, NULL, NULL},
    {"truncated_normal", "TruncatedNormal", truncated_normal, true, 0, NULL, NULL},
    {"variance_scaling", "VarianceScaling", variance_scaling, true, 0, NULL, NULL},
    {"glorot_uniform", "GlorotUniform", variance_scaling, true, 1, "fan_avg", "uniform"},
    {"glorot_normal", "GlorotNormal", variance_scaling, true, 1, "fan_avg", "truncated_normal"},
    {"he_uniform", "HeUniform", variance_scaling, true, 2, "fan_in", "uniform"},
    {"he_normal", "HeNormal", variance_scaling, true, 2, "fan_in", "truncated_normal"},
    {"lecun_uniform", "LecunUniform", variance_scaling, true, 1, "fan_in", "uniform"},
    {"lecun_normal", "LecunNormal", variance_scaling, true, 1, "fan_in", "truncated_normal"},
    {"orthogonal", "Orthogonal", orthogonal, true, 0, NULL, NULL},
    /* aliases */
    {"zeros", "zero", zeros, false, 0, NULL, NULL},
    {"ones", "one", ones, false, 0, NULL, NULL},
    {"random_normal", "normal", random_normal, true, 0, NULL, NULL},
    {"random_uniform", "uniform", random_uniform, true, 0, NULL, NULL},
};

/* The constant of a NULL-ended list that equals `given`, or NULL. */
static const char *one_of(const char *given, const char *const *texts) {
  for (; *texts; texts++)
    if (!strcmp(*texts, given)) return *texts;
  return NULL;
}

static bool variance_options(mix_initializer_options *o, const kind *kind) {
  static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
  static const char *const distributions[] = {"truncated_normal", "untruncated_normal", "uniform", "normal",
                                              NULL};
  const char *mode = kind->mode ? kind->mode : o->mode ? o->mode : "fan_in";
  const char *distribution = kind->distribution ? kind->distribution
                             : o->distribution  ? o->distribution
                                                : "truncated_normal";
  o->mode = one_of(mode, modes);
  o->distribution = one_of(distribution, distributions);
  if (!o->mode)
    mix_fail(MIX_VALUE_ERROR,
             "initializer %s: mode '%.60s' is not known; expected fan_in, fan_out or fan_avg", kind->name,
             mode);
  else if (!o->distribution)
    mix_fail(MIX_VALUE_ERROR,
             "initializer %s: distribution '%.60s' is not known; "
             "expected truncated_normal, untruncated_normal or uniform",
             kind->name, distribution);
  else if (!kind->scale && !(mix_option_number(o->scale, 1) > 0))
    mix_fail(MIX_VALUE_ERROR, "initializer %s: scale is %g; expected a positive number", kind->name,
             mix_option_number(o->scale, 1));
  return !mix_failed();
}

mix_initializer *mix_initializer_with(const mix_initializer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_initializer_options, o, options, "initializer");
  const kind *kind = NULL;
  for (size_t i = 0; o.initializer && !kind && i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, o.initializer) || !strcmp(kinds[i].class_name, o.initializer))
      kind = &kinds[i];
  if (!kind) return mix_unknown_name("initializer", o.initializer, kinds);
  if (kind->draw == variance_scaling && !variance_options(&o, kind)) return NULL;
  mix_initializer *initializer = mix_object_new(sizeof *initializer, &mix_initializer_class);
  if (!initializer) return NULL;
  initializer->kind = kind;
  initializer->options = o;
  initializer->options.initializer = kind->name;
  initializer->seeded = o.seed != 0;
  if (kind->random && !o.seed) initializer->options.seed = mix_next_seed();
  return mix_scoped(initializer);
}

const char *mix_initializer_name(const mix_initializer *initializer) {
  return initializer ? initializer->kind->name : NULL;
}
uint64_t mix_initializer_seed(const mix_initializer *initializer) {
  return initializer ? initializer->options.seed : 0;
}

mix_tensor *mix_initializer_call(mix_initializer *initializer, mix_shape shape, mix_dtype dtype) {
  char text[160];
  if (!mix_given(initializer, "initializer_call", "an initializer")) return NULL;
  if (mix_shape_checked_size(shape) < 0)
    return mix_fail(MIX_VALUE_ERROR, "initializer %s: %s is no shape that a weight can have",
                    initializer->kind->name, mix_shape_text(shape, text, sizeof text));
  if (initializer->kind->random && !mix_dtype_is_floating(dtype))
    return mix_fail(MIX_VALUE_ERROR, "initializer %s: the dtype is %s; expected a floating-point dtype",
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

mix_initializer *mix_initializer_choose(const char *name, mix_initializer *object, const char *call) {
  if (mix_failed()) return NULL;
  if (name && object)
    return mix_fail(MIX_VALUE_ERROR, "%s: both the initializer '%.60s' and an object were given; give one",
                    call, name);
  return object ? object : name ? mix_initializer_new(name) : NULL;
}

json_t *mix_initializer_to_json(const mix_initializer *initializer) {
  if (!initializer) return json_null();
  const mix_initializer_options *o = &initializer->options;
  const kind *kind = initializer->kind;
  json_t *config = json_object();
  bool good = config != NULL;
  if (kind->draw == constant) good = mix_json_set(config, "value", json_real(o->value));
  if (kind->draw == identity || kind->draw == orthogonal)
    good = good && mix_json_set(config, "gain", json_real(mix_option_number(o->gain, 1)));
  if (kind->draw == random_normal || kind->draw == truncated_normal)
    good = mix_json_set(config, "mean", json_real(o->mean)) &&
           mix_json_set(config, "stddev", json_real(mix_option_number(o->stddev, 0.05)));
  if (kind->draw == random_uniform) {
    bool defaults = o->minval == 0 && o->maxval == 0;
    good = mix_json_set(config, "minval", json_real(defaults ? -0.05 : mix_option_number(o->minval, 0))) &&
           mix_json_set(config, "maxval", json_real(defaults ? 0.05 : mix_option_number(o->maxval, 0)));
  }
  if (kind->draw == variance_scaling && !kind->scale)
    good = mix_json_set(config, "scale", json_real(mix_option_number(o->scale, 1))) &&
           mix_json_set(config, "mode", json_string(o->mode)) &&
           mix_json_set(config, "distribution", json_string(o->distribution));
  if (kind->random && good)
    good =
        mix_json_set(config, "seed", initializer->seeded ? json_integer((json_int_t)o->seed) : json_null());
  if (!good) {
    json_decref(config);
    return NULL;
  }
  const char *class_name = kind->class_name;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, kind->name)) {
      class_name = kinds[i].class_name; /* the first row of a name has the class name */
      break;
    }
  return json_pack("{s:s,s:s,s:o,s:n}", "module", "keras.initializers", "class_name", class_name, "config",
                   config, "registered_name");
}

mix_initializer *mix_initializer_from_json(const json_t *json) {
  if (mix_failed() || !json || json_is_null(json)) return NULL;
  if (json_is_string(json)) return mix_initializer_new(json_string_value(json));
  const json_t *config = json_object_get(json, "config");
  mix_initializer_options o = {.size = sizeof o, .initializer = mix_json_string_or(json, "class_name", "")};
  o.seed = (uint64_t)mix_json_integer_or(config, "seed", 0);
  o.value = mix_json_number_or(config, "value", 0);
  o.gain = mix_json_number_or(config, "gain", 1);
  o.mean = mix_json_number_or(config, "mean", 0);
  o.stddev = mix_json_number_or(config, "stddev", 0.05);
  o.minval = mix_json_number_or(config, "minval", -0.05);
  o.maxval = mix_json_number_or(config, "maxval", 0.05);
  o.scale = mix_json_number_or(config, "scale", 1);
  o.mode = mix_json_string_or(config, "mode", NULL);
  o.distribution = mix_json_string_or(config, "distribution", NULL);
  double *zero_means_zero[] = {&o.gain, &o.stddev, &o.minval, &o.maxval, &o.scale};
  for (size_t i = 0; i < sizeof zero_means_zero / sizeof *zero_means_zero; i++)
    if (*zero_means_zero[i] == 0) *zero_means_zero[i] = MIX_ZERO;
  return mix_failed() ? NULL : mix_initializer_with(&o);
}
