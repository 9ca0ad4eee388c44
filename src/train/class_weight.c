/* Sample weights, and the weights that fit's class_weight gives to labels (docs/spec/keras.md, 13.2). */
#include "train/fit_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool mix_class_weights_check(int count, const double *weights, const char *call) {
  if (count < 0 || count > MIX_CLASS_MAX)
    return mix_fail_value("%s: class_weight_count is %d; expected 0 to %d", call, count, MIX_CLASS_MAX);
  for (int i = 0; i < count; i++)
    if (isnan(weights[i])) return mix_fail_value("%s: class_weights[%d] is nan; expected a number", call, i);
  return true;
}

static bool check_labels(const mix_model *model, int count, const int64_t *labels, const char *call,
                         int64_t *classes) {
  *classes = 0;
  for (int i = 0; i < count; i++) {
    if (labels[i] < 0 || labels[i] >= 1 << 20)
      return mix_fail_value("%s: class weight for label %lld; expected a class from 0 to 1048575", call,
                            (long long)labels[i]);
    for (int before = 0; before < i; before++)
      if (labels[before] == labels[i])
        return mix_fail_value("%s: class weights name label %lld twice", call, (long long)labels[i]);
    if (labels[i] >= *classes) *classes = labels[i] + 1;
  }
  if (!model->semantics->class_weights_complete || *classes == count) return true;
  return mix_fail_value(
      "%s: class weights name %d labels, the largest is %lld; expected all classes from 0 on, each once",
      call, count, (long long)*classes - 1);
}

/* A weight for each class. NULL with the error recorded. */
static mix_tensor *table_of(int64_t classes, int count, const int64_t *labels, const double *weights) {
  float *values = mix_alloc(sizeof *values * (size_t)classes);
  if (!values) return NULL;
  for (int64_t c = 0; c < classes; c++) values[c] = 1;
  for (int i = 0; i < count; i++) values[labels[i]] = (float)weights[i];
  mix_tensor *table = mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(classes));
  mix_free(values);
  return table;
}

static bool same_bytes(mix_tensor *a, mix_tensor *b) {
  const mix_shape shape = mix_tensor_shape(a);
  if (!mix_shape_equal(shape, mix_tensor_shape(b))) return false;
  const void *x = mix_tensor_data(a), *y = mix_tensor_data(b);
  return x && y && !memcmp(x, y, mix_value_bytes(MIX_FLOAT32, shape));
}

mix_status mix_model_set_class_weights(mix_model *model, int count, const int64_t *labels,
                                       const double *weights, const char *call) {
  mix_compiled_state *state = model->state;
  if (!count && !state->class_weights) return MIX_OK;
  if (count && state->output_count > 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: class weights need a model of one output; this one has %d",
                           call, state->output_count);
  int64_t classes;
  if (!check_labels(model, count, labels, call, &classes)) return mix_error();
  mix_tensor *table = count ? table_of(classes, count, labels, weights) : NULL;
  if (mix_failed() || (table && state->class_weights && same_bytes(table, state->class_weights)))
    return mix_error();
  state->class_weights_all = model->semantics->class_weights_complete;
  mix_release(state->class_weights);
  mix_release(state->train);
  state->class_weights = mix_retain(table);
  state->train = NULL;
  return MIX_OK;
}

mix_tensor *mix_class_labels(mix_tensor *y) {
  const mix_shape shape = mix_tensor_shape(y);
  if (shape.rank > 1) y = shape.dims[shape.rank - 1] == 1 ? mix_squeeze(y, MIX_AXES(-1)) : mix_argmax(y, -1);
  if (mix_dtype_is_floating(mix_tensor_dtype(y))) y = mix_round(y); /* smoothed labels, as in Keras */
  return mix_cast(mix_index_values(y), MIX_INT64);
}

/* The class weights of labels: (rows) or (rows, time) float32; NULL: none. */
static mix_tensor *class_weights_of(mix_model *model, mix_tensor *y) {
  mix_tensor *table = model->state->class_weights;
  if (!table) return NULL;
  mix_tensor *labels = mix_class_labels(y);
  if (model->state->class_weights_all)
    return mix_gather(table, labels, 0); /* a label out of range is an error of the step */
  int64_t classes = mix_tensor_shape(table).dims[0];
  mix_tensor *known = mix_logical_and(mix_greater_equal(labels, mix_scalar_like(labels, 0)),
                                      mix_less(labels, mix_scalar_like(labels, (double)classes)));
  mix_tensor *inside = mix_select(known, labels, mix_scalar_like(labels, 0));
  return mix_select(known, mix_gather(table, inside, 0), mix_scalar(1, MIX_FLOAT32));
}

/* tf_keras multiplies class and sample weights. Sample weights may be (rows) or (rows, time). */
mix_tensor *mix_model_weights_of_samples(mix_model *model, mix_list *arguments, int inputs, int output,
                                         bool training) {
  mix_compiled_state *state = model->state;
  mix_tensor *classes = training ? class_weights_of(model, mix_list_get(arguments, inputs + output)) : NULL;
  if (!state->weight_arguments) return classes;
  int first = inputs + state->output_count;
  mix_tensor *samples = mix_list_get(arguments, first + (state->weight_arguments > 1 ? output : 0));
  if (!mix_dtype_is_floating(mix_tensor_dtype(samples))) samples = mix_cast(samples, MIX_FLOAT32);
  if (!classes || !samples) return samples;
  classes = mix_cast(classes, mix_tensor_dtype(samples));
  mix_shape shape = mix_tensor_shape(samples);
  for (int d = 1; d < shape.rank; d++) shape.dims[d] = 1;
  return mix_multiply(samples, mix_reshape(classes, shape));
}

json_t *mix_class_weights_json(const mix_fit_options *o) {
  char label[32];
  json_t *weights = json_object();
  for (int i = 0; i < o->class_weight_count; i++) {
    snprintf(label, sizeof label, "%lld", (long long)o->class_labels[i]);
    if (!mix_json_set(weights, label, mix_json_real(o->class_weights[i]))) break;
  }
  return weights;
}
