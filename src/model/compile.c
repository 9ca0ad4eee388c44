/* model_compile: resolves the optimizer, losses and metrics of a model. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "optim/optimizer.h"
#include <math.h>

static mix_loss *named_loss(const mix_model *model, const char *name) {
  mix_loss_options options = {.size = sizeof options, .loss = name, .semantics = model->semantics};
  return mix_loss_with(&options);
}

/* Is there nothing behind the outputs? */
static bool fits_outputs(const mix_compiled_state *state, const mix_compile_options *options) {
  int losses = MIX_MODEL_MAX, weights = MIX_MODEL_MAX;
  while (losses && !options->losses[losses - 1]) losses--;
  while (weights && options->loss_weights[weights - 1] == 0) weights--;
  const char *what = losses > state->output_count ? "losses" : "loss_weights";
  const int count = losses > state->output_count ? losses : weights;
  if (count <= state->output_count) return true;
  return mix_fail_value("model_compile: %d %s; the model has %d output%s", count, what, state->output_count,
                        state->output_count == 1 ? "" : "s");
}

static bool outputs_loss_alone(const mix_compiled_state *state, const mix_compile_options *options,
                               int ways) {
  bool weighs = false;
  for (int i = 0; i < state->output_count; i++) weighs |= options->loss_weights[i] != 0;
  if (!options->outputs_loss || (!ways && !weighs)) return true;
  return mix_fail_value("model_compile: outputs_loss beside %s; it is the whole loss of the outputs",
                        ways ? "another loss" : "loss_weights");
}

static bool resolve_losses(mix_model *model, mix_compiled_state *state, const mix_compile_options *options) {
  int ways = (options->loss != NULL) + (options->loss_object != NULL) + (options->losses[0] != NULL) +
             (options->loss_objects != NULL);
  if (ways > 1)
    return mix_fail_value("model_compile: give one of loss, loss_object, losses and loss_objects");
  if (!fits_outputs(state, options) || !outputs_loss_alone(state, options, ways)) return false;
  if (options->loss_objects && mix_list_count(options->loss_objects) != state->output_count)
    return mix_fail_value("model_compile: %d loss_objects; the model has %d outputs",
                          mix_list_count(options->loss_objects), state->output_count);
  for (int i = 0; i < state->output_count; i++) {
    mix_loss *loss = options->loss_object;
    if (options->loss)
      loss = named_loss(model, options->loss);
    else if (options->losses[0] && !options->losses[i])
      mix_fail_value("model_compile: no loss for output %d ('%s')", i, mix_model_output_name(model, i));
    else if (options->losses[0])
      loss = named_loss(model, options->losses[i]);
    else if (options->loss_objects)
      loss = mix_list_get(options->loss_objects, i);
    if (isnan(options->loss_weights[i]))
      mix_fail_value("model_compile: loss_weights[%d] is nan; expected a number", i);
    if (mix_failed()) return false;
    if (loss && !mix_is(loss, &mix_loss_class))
      return mix_fail_type("model_compile: the loss of output %d is another object; expected a loss", i);
    state->losses[i] = mix_retain(loss);
    state->loss_weights[i] = mix_option_number(options->loss_weights[i], 1);
  }
  return true;
}

static bool resolve_optimizer(mix_model *model, mix_compiled_state *state, const mix_compile_options *options,
                              bool wraps) {
  if (options->optimizer && options->optimizer_name)
    return mix_fail_value("model_compile: give optimizer or optimizer_name, not both");
  mix_optimizer *optimizer = options->optimizer;
  if (optimizer && !mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_type("model_compile: optimizer is another object; expected an optimizer");
  if (!optimizer)
    optimizer = mix_optimizer_from_text(options->optimizer_name ? options->optimizer_name : "rmsprop",
                                        model->semantics);
  if (options->no_auto_scale_loss && !model->semantics->auto_wrap_optional)
    return mix_fail_type(
        "model_compile: no_auto_scale_loss is not an argument of %s; to scale nothing, wrap the optimizer "
        "in a fixed loss scale of 1",
        model->semantics->name);
  state->given_optimizer = mix_retain(optimizer);
  if (optimizer && !options->no_auto_scale_loss && wraps)
    optimizer = mix_optimizer_for_policy(optimizer, mix_model_policy(model));
  if (mix_failed() || !optimizer) return false;
  state->optimizer = mix_retain(optimizer);
  return true;
}

/* ---- preprocess ---- */

mix_list *mix_preprocess_images(void *context, mix_list *inputs) {
  const mix_model *model = context;
  const mix_shape taken = model->input_shape.rank ? model->input_shape : mix_model_input_shape(model, 0);
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(inputs); i++) {
    mix_tensor *x = mix_list_get(inputs, i);
    const mix_shape shape = mix_tensor_shape(x);
    if (mix_tensor_dtype(x) == MIX_UINT8) {
      x = mix_divide(mix_cast(x, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32));
      if (taken.rank == 2 && shape.rank > 2) x = mix_reshape(x, MIX_SHAPE(shape.dims[0], -1));
    }
    mix_list_append(list, x);
  }
  return list;
}

static bool resolve_preprocess(mix_model *model, mix_compile_options *options) {
  if (options->image_bytes && options->preprocess && options->preprocess != mix_preprocess_images)
    mix_fail_value("model_compile: give preprocess or image_bytes, not both");
  if (options->image_bytes) options->preprocess = mix_preprocess_images, options->preprocess_context = model;
  mix_keep_loaded((const void *)options->preprocess);
  mix_keep_loaded((const void *)options->outputs_loss);
  return !mix_failed();
}

static mix_status compile(mix_model *model, const mix_compile_options *given, bool wraps) {
  mix_compile_options options;
  if (!mix_options_copy(&options, sizeof options, given, "model_compile")) return mix_error();
  mix_compiled_state *state = mix_calloc(1, sizeof *state);
  if (!state) return mix_error();
  bool good = false;
  MIX_SCOPE {
    state->output_count = mix_model_output_count(model);
    good = resolve_preprocess(model, &options) && resolve_optimizer(model, state, &options, wraps) &&
           resolve_losses(model, state, &options) && mix_model_compile_metrics(model, state, &options);
  }
  if (!good) {
    mix_compiled_state_free(state);
    return mix_error();
  }
  mix_compile_options_keep(&state->given, &options);
  mix_compiled_state_free(model->state);
  mix_predictors_drop(model);
  model->state = state;
  mix_warn_of_unmatched_keys(model->layer, "model_compile");
  return MIX_OK;
}

static mix_status use_to_compile(mix_model *model, const mix_compile_options *given, bool wraps) {
  mix_status status = MIX_OK;
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, "model_compile") { status = compile(model, given, wraps); }
  return status ? status : mix_error();
}

mix_status mix_model_compile_with(mix_model *model, const mix_compile_options *given) {
  return use_to_compile(model, given, true);
}

mix_status mix_model_compile_unwrapped(mix_model *model, const mix_compile_options *given) {
  return use_to_compile(model, given, false);
}

bool mix_model_wants_labels(const mix_model *model) {
  const mix_compiled_state *state = model->state;
  bool any = !state || state->given.outputs_loss || (state->metric_count && !state->metrics[0].added);
  for (int i = 0; !any && i < state->output_count; i++) any = state->losses[i] != NULL;
  return any;
}

mix_optimizer *mix_model_optimizer(const mix_model *model) {
  return mix_is(model, &mix_model_object_class) && model->state ? model->state->optimizer : NULL;
}
