/* Data, nested or not, as the arguments of a step: inputs, labels, weights. */
#include "base/error.h"
#include "train/data_adapter.h"

static void add(struct mix_arrangement *arrangement, int count, const int *places, int first) {
  for (int i = 0; i < count; i++) arrangement->places[arrangement->count++] = places ? places[i] : first + i;
}

static bool is_dict(const mix_component *given) { return given->structure && given->structure->names; }

static bool arrange_labels(const mix_model *model, const mix_component *y, const char *call,
                           struct mix_arrangement *arrangement) {
  int outputs = mix_model_output_count(model), places[MIX_MODEL_MAX];
  if (!y->leaves && !mix_model_wants_labels(model)) {
    for (int i = 0; i < outputs; i++) places[i] = -1;
    add(arrangement, outputs, places, 0);
    return true;
  }
  if (is_dict(y)) {
    if (!mix_match_outputs(model, y, "y", places, call)) return false;
    add(arrangement, outputs, places, 0);
    return true;
  }
  if (y->leaves != outputs)
    return mix_fail_value("%s: %d arrays of labels; the model has %d outputs", call, y->leaves, outputs);
  add(arrangement, outputs, NULL, y->first);
  return true;
}

/* Keras 3 wants weights nested as the labels. */
static bool weights_fit(const mix_model *model, const mix_component *y, const mix_component *weights,
                        const char *call) {
  bool alike = is_dict(weights) == is_dict(y) || (!is_dict(weights) && weights->leaves == 1);
  if (!alike && !model->semantics->output_dicts_partial)
    mix_fail_value(
        "%s: sample_weight and y are nested differently; give one array of weights for each output in y",
        call);
  return !mix_failed();
}

static bool arrange_weights(const mix_model *model, const mix_component *y, const mix_component *weights,
                            const char *call, struct mix_arrangement *arrangement) {
  int outputs = mix_model_output_count(model), places[MIX_MODEL_MAX];
  if (!weights_fit(model, y, weights, call)) return false;
  if (is_dict(weights)) {
    if (!mix_match_outputs(model, weights, "sample_weight", places, call)) return false;
    add(arrangement, outputs, places, 0);
    return true;
  }
  if (weights->leaves != 1 && weights->leaves != outputs)
    return mix_fail_value("%s: %d arrays of sample weights; expected one, or one for each of the %d outputs",
                          call, weights->leaves, outputs);
  add(arrangement, weights->leaves, NULL, weights->first);
  return true;
}

/* Marks the outputs whose labels are NULL or lacking. */
static bool note_missing(const mix_model *model, mix_list *leaves, const char *call,
                         struct mix_arrangement *arrangement, mix_step_arguments *arguments) {
  for (int i = 0; i < arrangement->count; i++)
    if (arrangement->places[i] >= 0 && !mix_list_get(leaves, arrangement->places[i]))
      arrangement->places[i] = -1;
  for (int i = 0; i < arrangement->outputs; i++) {
    if (arrangement->places[arrangement->inputs + i] >= 0) continue;
    arguments->missing_labels |= 1u << i;
    if (!model->semantics->output_dicts_partial && mix_model_wants_labels(model))
      mix_fail_value("%s: y lacks the output '%s'", call, mix_model_output_name(model, i));
  }
  return !mix_failed();
}

bool mix_arrange(const mix_model *model, mix_list *leaves, const mix_component *x, const mix_component *y,
                 const mix_component *weights, const char *call, struct mix_arrangement *arrangement,
                 mix_step_arguments *arguments) {
  int inputs = mix_model_input_count(model), outputs = y ? mix_model_output_count(model) : 0,
      places[MIX_MODEL_MAX];
  *arrangement = (struct mix_arrangement){.inputs = inputs, .outputs = outputs};
  *arguments = (mix_step_arguments){0};
  if (!mix_match_inputs(model, x, places, call)) return false;
  add(arrangement, inputs, places, 0);
  if (model->kind == MIX_SUBCLASSED && is_dict(x)) arguments->input_names = x->structure;
  if (!y) return true;
  if (!arrange_labels(model, y, call, arrangement)) return false;
  if (weights && !arrange_weights(model, y, weights, call, arrangement)) return false;
  arguments->weights = arrangement->count - inputs - outputs;
  return note_missing(model, leaves, call, arrangement, arguments);
}

/* Weights of one for every sample. */
static mix_tensor *ones_for(mix_tensor *rows) {
  mix_tensor *ones = mix_fill(MIX_SHAPE(mix_tensor_shape(rows).dims[0]), 1, mix_floatx());
  return ones && mix_evaluate(1, &ones) == MIX_OK ? ones : NULL;
}

mix_list *mix_arranged(const struct mix_arrangement *arrangement, mix_list *leaves) {
  mix_list *arguments = mix_list_new(0, NULL);
  mix_tensor *first = mix_list_get(leaves, arrangement->places[0]);
  for (int i = 0; i < arrangement->count && !mix_failed(); i++) {
    int place = arrangement->places[i];
    mix_tensor *argument = place >= 0 ? mix_list_get(leaves, place) : NULL;
    if (!argument) argument = i < arrangement->inputs + arrangement->outputs ? first : ones_for(first);
    mix_list_append(arguments, argument);
  }
  return mix_failed() ? NULL : arguments;
}
