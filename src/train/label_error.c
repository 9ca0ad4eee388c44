/* Where a label stands that a step refused: kernels see rows of a batch, which training may have shuffled. */
#include "train/data_adapter.h"

#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* Does the message say that label? */
static bool names(const char *message, int64_t label) {
  char text[40];
  const int length = snprintf(text, sizeof text, "label %lld", (long long)label);
  const char *at = strstr(message, text);
  return at && (at[length] == ' ' || at[length] == ',');
}

/* The first label outside [0, classes), of which the message speaks unless it is NULL. False: none, or they
 * cannot be read. */
static bool find_outside(mix_tensor *labels, int64_t classes, const char *message, int64_t *label,
                         int64_t *row) {
  const mix_shape shape = mix_tensor_shape(labels);
  const int64_t count = labels ? mix_shape_size(shape) : 0, rows = shape.rank > 0 ? shape.dims[0] : 0;
  int64_t *values = count > 0 && rows > 0 ? mix_scoped_memory((size_t)count * sizeof *values) : NULL;
  if (!values || mix_tensor_read(mix_cast(labels, MIX_INT64), MIX_INT64, values, count)) return false;
  for (int64_t i = 0; i < count; i++)
    if ((values[i] < 0 || values[i] >= classes) && (!message || names(message, values[i]))) {
      *label = values[i];
      *row = i / (count / rows);
      return true;
    }
  return false;
}

static const char *place_text(const mix_data_adapter *adapter, int64_t row, char *text, size_t size) {
  const char *validation = adapter->validates ? "the validation data" : NULL;
  if (adapter->batches)
    snprintf(text, size, "row %lld of %s",
             (long long)mix_batches_row(adapter->batches, adapter->next - 1, row),
             validation ? validation : "y");
  else
    snprintf(text, size, "row %lld of batch %lld of %s", (long long)row, (long long)adapter->position - 1,
             validation ? validation : "the data set");
  return text;
}

/* True with the error recorded if a label has no class weight. */
static bool lacks_weight(const mix_data_adapter *adapter, mix_list *batch) {
  const mix_compiled_state *state = adapter->model->state;
  char place[80];
  int64_t label, row;
  if (adapter->use != MIX_ADAPTER_TRAIN || !state->class_weights || !state->class_weights_all) return false;
  mix_tensor *y = mix_list_get(batch, mix_model_input_count(adapter->model));
  const int64_t classes = mix_tensor_shape(state->class_weights).dims[0];
  if (!find_outside(mix_class_labels(y), classes, NULL, &label, &row)) return false;
  mix_fail_value(
      "%s: the class weights lack class %lld, which is the label of %s; they have classes 0 to %lld, and "
      "each class needs a weight: 1 leaves it as it is",
      adapter->call, (long long)label, place_text(adapter, row, place, sizeof place), (long long)classes - 1);
  return true;
}

/* True with the error recorded if a label is outside the classes of a sparse loss. */
static bool is_outside(const mix_data_adapter *adapter, mix_list *batch, const char *message) {
  const mix_compiled_state *state = adapter->model->state;
  const int inputs = mix_model_input_count(adapter->model);
  char place[80];
  for (int i = 0; i < state->output_count; i++) {
    if (!state->losses[i] || !mix_loss_takes_class_numbers(state->losses[i])) continue;
    const mix_shape outputs = mix_model_output_shape(adapter->model, i);
    /* Of a model whose shapes are not known the message alone says which label it is. */
    const int64_t classes = outputs.rank < 1 ? 0 : outputs.dims[outputs.rank - 1];
    int64_t label, row;
    if (!find_outside(mix_list_get(batch, inputs + i), classes, message, &label, &row)) continue;
    mix_fail_value("%s; label %lld is in %s", message, (long long)label,
                   place_text(adapter, row, place, sizeof place));
    return true;
  }
  return false;
}

void mix_data_adapter_explain(const mix_data_adapter *adapter, mix_list *batch) {
  mix_error_aside error;
  if (mix_error() != MIX_VALUE_ERROR) return;
  mix_error_set_aside(&error);
  MIX_SCOPE {
    if (!lacks_weight(adapter, batch) && !is_outside(adapter, batch, error.message)) {
      mix_error_clear();
      mix_error_put_back(&error);
    }
  }
}
