/* Shared by the layer tests: inputs, gradients by finite differences, 16-bit policies against float32, config
 * round trips. */
#ifndef MIX_TESTS_NN_LAYER_SUPPORT_H
#define MIX_TESTS_NN_LAYER_SUPPORT_H

#include "nn/config.h"
#include "nn/support.h"
#include <mixtape/optimizer.h>

enum { INPUTS = 3, SIZE = 256 };

/* Numbers in (-1, 1), at least 0.02 away from 0, to avoid the corners of piecewise functions. */
static inline double number_at(int i) {
  double x = fmod(0.618033988749895 * (i + 1) * (i % 7 + 1), 1) * 2 - 1;
  return fabs(x) < 0.02 ? x + 0.1 : x;
}

/* A layer and its inputs. */
typedef struct trial {
  mix_layer *(*make)(const char *dtype);
  int inputs;               /* 1: a tensor; more: a list */
  mix_shape shapes[INPUTS]; /* with the batch axis */
  bool training;
  double tolerance; /* of float16 against float32; 0: 2e-3 */
  bool ids;         /* integer inputs: no gradient */
  bool arguments;   /* those after the first are arguments, not a list */
} trial;

static inline mix_tensor *numbers(mix_shape shape, int seed, mix_dtype dtype, double *values) {
  double local[SIZE];
  int count = (int)mix_shape_size(shape);
  assert_true(count <= SIZE);
  double *data = values ? values : local;
  for (int i = 0; i < count; i++)
    data[i] = mix_dtype_is_integer(dtype) ? (double)((i * 5 + seed) % 4) : number_at(i + 31 * seed);
  return mix_tensor_from_doubles(data, dtype, shape);
}

static inline mix_tensor *call_trial(mix_layer *layer, const trial *t, mix_tensor *const *inputs) {
  void *given = t->inputs == 1 || t->arguments ? (void *)inputs[0]
                                               : mix_list_new(t->inputs, (void *const *)inputs);
  if (t->arguments)
    return mix_call(layer, given, .training = t->training ? MIX_TRUE : MIX_FALSE,
                    .arguments = mix_list_new(t->inputs - 1, (void *const *)(inputs + 1)));
  return mix_call(layer, given, .training = t->training ? MIX_TRUE : MIX_FALSE);
}
/* A scalar whose derivative differs for every element of the result. */
static inline mix_tensor *scalar_of(mix_tensor *y) {
  double weights[SIZE];
  int count = (int)mix_shape_size(mix_tensor_shape(y));
  assert_true(count <= SIZE);
  for (int i = 0; i < count; i++) weights[i] = number_at(i + 1000);
  mix_tensor *w = mix_tensor_from_doubles(weights, mix_tensor_dtype(y), mix_tensor_shape(y));
  return mix_reduce_sum(mix_multiply(y, w), MIX_ALL_AXES, false);
}
/* Changes the weights from their simple initial values. */
static inline void vary_weights(mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(weights); i++) {
    mix_variable *variable = mix_list_get(weights, i);
    mix_shape shape = mix_variable_shape(variable);
    mix_tensor *value = numbers(shape, 17 + i, MIX_FLOAT64, NULL);
    bool positive = strstr(mix_variable_name(variable), "variance") != NULL;
    mix_list_append(values, positive ? mix_add(mix_square(value), mix_scalar(0.25, MIX_FLOAT64)) : value);
  }
  assert_int_equal(mix_layer_set_weights(layer, values), MIX_OK);
}

static inline double loss_at(mix_layer *layer, const trial *t, mix_tensor *const *inputs) {
  double loss = 0;
  MIX_SCOPE { loss = mix_tensor_item(scalar_of(call_trial(layer, t, inputs))); }
  return loss;
}

/* Central differences in float64 with h = 1e-5: truncation h^2 |f'''| / 6 is about 1e-9 for the functions
 * here (derivatives up to some hundreds), rounding eps |f| / h about 1e-10. */
static inline void gradients_agree(const trial *t) {
  const double h = 1e-5, tolerance = 1e-6;
  mix_layer *layer = t->make("float64");
  double values[INPUTS][SIZE];
  mix_tensor *inputs[INPUTS];
  mix_dtype dtype = t->ids ? MIX_INT32 : MIX_FLOAT64;
  for (int i = 0; i < t->inputs; i++) inputs[i] = numbers(t->shapes[i], i, dtype, values[i]);
  assert_non_null(call_trial(layer, t, inputs));
  vary_weights(layer);
  mix_list *weights = mix_layer_trainable_weights(layer), *sources = mix_list_new(0, NULL);
  mix_tape *tape = mix_tape_begin();
  for (int i = 0; i < t->inputs && !t->ids; i++) {
    mix_tape_watch(tape, inputs[i]);
    mix_list_append(sources, inputs[i]);
  }
  for (int i = 0; i < mix_list_count(weights); i++) mix_list_append(sources, mix_list_get(weights, i));
  mix_tensor *loss = scalar_of(call_trial(layer, t, inputs));
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, sources);
  if (!gradients) fail_msg("%s: %s", mix_layer_class_name(layer), mix_error_message());
  for (int s = 0; s < mix_list_count(sources); s++) {
    bool input = s < mix_list_count(sources) - mix_list_count(weights);
    mix_tensor *gradient = mix_list_get(gradients, s);
    mix_shape shape = input ? t->shapes[s] : mix_variable_shape(mix_list_get(sources, s));
    int count = (int)mix_shape_size(shape);
    double got[SIZE] = {0}, at[SIZE];
    if (gradient) assert_int_equal(mix_tensor_read(gradient, MIX_FLOAT64, got, count), MIX_OK);
    if (input)
      memcpy(at, values[s], sizeof at);
    else
      mix_tensor_read(mix_variable_true_value(mix_list_get(sources, s)), MIX_FLOAT64, at, count);
    for (int i = 0; i < count; i++) {
      double sides[2], kept = at[i];
      for (int side = 0; side < 2; side++) {
        at[i] = kept + (side ? -h : h);
        mix_tensor *moved[INPUTS], *changed = mix_tensor_from_doubles(at, MIX_FLOAT64, shape);
        memcpy(moved, inputs, sizeof moved);
        if (input)
          moved[s] = changed;
        else
          mix_variable_assign(mix_list_get(sources, s), changed);
        sides[side] = loss_at(layer, t, moved);
      }
      at[i] = kept;
      if (!input)
        mix_variable_assign(mix_list_get(sources, s), mix_tensor_from_doubles(at, MIX_FLOAT64, shape));
      double wanted = (sides[0] - sides[1]) / (2 * h);
      if (!(fabs(got[i] - wanted) <= tolerance * (1 + fabs(wanted))))
        fail_msg("%s: source %d, element %d: gradient %.9g, finite difference %.9g",
                 mix_layer_class_name(layer), s, i, got[i], wanted);
    }
  }
}

/* The layer under a 16-bit policy with the float32 layer's weights: results, and weights after a step of SGD
 * of rate 0.1, agree to the tolerance, absolute and relative (M08). bfloat16 has 8 times float16's roundoff
 * and gets 8 times the tolerance. */
static inline void policy_agrees(const trial *t, const char *policy) {
  double scale = strstr(policy, "bfloat16") ? 8 : 1, tolerance = scale * (t->tolerance ? t->tolerance : 2e-3);
  mix_layer *layers[2] = {t->make("float32"), t->make(policy)};
  mix_tensor *inputs[INPUTS];
  double y[2][SIZE], w[2][8][SIZE];
  int y_count = 0, w_counts[8] = {0}, sources = 0;
  for (int i = 0; i < t->inputs; i++)
    inputs[i] = numbers(t->shapes[i], i, t->ids ? MIX_INT32 : MIX_FLOAT32, NULL);
  for (int l = 0; l < 2; l++) {
    mix_tensor *first = call_trial(layers[l], t, inputs);
    if (!first) fail_msg("%s under %s: %s", mix_layer_class_name(layers[l]), policy, mix_error_message());
    expect_dtype(first, mix_layer_compute_dtype(layers[l]));
    vary_weights(layers[l]);
    mix_list *weights = mix_layer_trainable_weights(layers[l]);
    sources = mix_list_count(weights);
    mix_tape *tape = mix_tape_begin();
    mix_tensor *result = call_trial(layers[l], t, inputs), *loss = scalar_of(mix_cast(result, MIX_FLOAT32));
    mix_tape_end(tape);
    y_count = (int)mix_shape_size(mix_tensor_shape(result));
    mix_tensor_read(result, MIX_FLOAT64, y[l], y_count);
    mix_list *gradients = sources ? mix_tape_gradient(tape, loss, weights) : NULL;
    if (sources) mix_optimizer_apply_gradients(mix_sgd(.learning_rate = 0.1), gradients, weights);
    for (int s = 0; s < sources; s++) {
      w_counts[s] = (int)mix_shape_size(mix_variable_shape(mix_list_get(weights, s)));
      mix_tensor_read(mix_variable_true_value(mix_list_get(weights, s)), MIX_FLOAT64, w[l][s], w_counts[s]);
    }
    assert_int_equal(mix_error(), MIX_OK);
  }
  const char *name = mix_layer_class_name(layers[0]);
  for (int i = 0; i < y_count; i++)
    if (!(fabs(y[1][i] - y[0][i]) <= tolerance * (1 + fabs(y[0][i]))))
      fail_msg("%s under %s: element %d: %.9g, in float32 %.9g", name, policy, i, y[1][i], y[0][i]);
  for (int s = 0; s < sources; s++)
    for (int i = 0; i < w_counts[s]; i++)
      if (!(fabs(w[1][s][i] - w[0][s][i]) <= tolerance * (1 + fabs(w[0][s][i]))))
        fail_msg("%s under %s: weight %d: element %d: %.9g, in float32 %.9g", name, policy, s, i, w[1][s][i],
                 w[0][s][i]);
}

/* A layer created from another's config has the same config and class. Returns it. */
static inline mix_layer *made_again(mix_layer *layer) {
  if (!layer) fail_msg("%s", mix_error_message());
  const char *text = mix_layer_config(layer);
  assert_non_null(text);
  mix_layer *again = mix_layer_from_config(mix_layer_class_name(layer), text, mix_layer_semantics(layer));
  if (!again) fail_msg("%s: %s", text, mix_error_message());
  assert_string_equal(mix_layer_class_name(again), mix_layer_class_name(layer));
  assert_string_equal(mix_layer_config(again), text);
  return again;
}

/* Symbolic calls with an unknown batch give the shape of real calls, and so does output_shape for a single
 * input. */
static inline void shapes_agree(const trial *t) {
  mix_layer *layer = t->make("float32");
  mix_tensor *inputs[INPUTS], *symbolic[INPUTS];
  for (int i = 0; i < t->inputs; i++) {
    mix_shape inner = {.rank = t->shapes[i].rank - 1};
    memcpy(inner.dims, t->shapes[i].dims + 1, (size_t)inner.rank * sizeof *inner.dims);
    symbolic[i] = mix_input(.shape = inner, .dtype = t->ids ? "int32" : "float32");
    inputs[i] = numbers(t->shapes[i], i, t->ids ? MIX_INT32 : MIX_FLOAT32, NULL);
  }
  mix_tensor *outline = call_trial(layer, t, symbolic), *real = call_trial(layer, t, inputs);
  if (!outline || !real) fail_msg("%s: %s", mix_layer_class_name(layer), mix_error_message());
  mix_shape wanted = mix_tensor_shape(real);
  expect_dtype(outline, mix_tensor_dtype(real));
  wanted.dims[0] = MIX_UNKNOWN;
  expect_shape(outline, wanted);
  if (t->inputs > 1) return;
  char a[160], b[160];
  mix_shape given = t->shapes[0], reported;
  given.dims[0] = MIX_UNKNOWN;
  reported = mix_layer_output_shape(layer, given);
  assert_string_equal(mix_shape_text(reported, a, sizeof a), mix_shape_text(wanted, b, sizeof b));
}

/* The layer's result inside a captured function, called twice, equals that outside. */
static inline mix_list *trial_body(void *context, mix_list *arguments) {
  void *const *c = context;
  mix_tensor *inputs[INPUTS];
  const trial *t = c[1];
  for (int i = 0; i < t->inputs; i++) inputs[i] = mix_list_get(arguments, i);
  return mix_list_of(call_trial(c[0], t, inputs));
}
static inline void captures_agree(const trial *t) {
  mix_layer *layer = t->make("float32");
  mix_tensor *inputs[INPUTS];
  for (int i = 0; i < t->inputs; i++)
    inputs[i] = numbers(t->shapes[i], i, t->ids ? MIX_INT32 : MIX_FLOAT32, NULL);
  void *context[] = {layer, (void *)t};
  mix_function *function = mix_function_new(trial_body, context);
  double outside[SIZE];
  mix_tensor *y = call_trial(layer, t, inputs);
  int count = (int)mix_shape_size(mix_tensor_shape(y));
  mix_tensor_read(y, MIX_FLOAT64, outside, count);
  for (int round = 0; round < 2; round++) {
    mix_list *results = mix_function_call(function, mix_list_new(t->inputs, (void *const *)inputs));
    if (!results) fail_msg("%s: %s", mix_layer_class_name(layer), mix_error_message());
    expect_values(mix_list_get(results, 0), count, outside, 0, 0);
  }
}

#endif
