/* The loss of all outputs together that compile was given (mix_compile_options.outputs_loss). */
#include "base/error.h"
#include "graph/node.h"
#include "nn/losses/loss.h"
#include "train/captured_steps.h"

typedef struct outputs_call {
  const mix_compile_options *given;
  mix_list *y_true, *y_pred;
} outputs_call;

static mix_tensor *values(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  const outputs_call *call = context;
  (void)y_true, (void)y_pred; /* those of the first output */
  return call->given->outputs_loss(call->given->outputs_loss_context, call->y_true, call->y_pred);
}

/* As in each loss of Keras 3. */
static mix_tensor *in_floatx(const mix_model *model, mix_tensor *tensor) {
  return model->semantics->loss_in_floatx && tensor && mix_dtype_is_floating(mix_tensor_dtype(tensor))
             ? mix_cast(tensor, mix_floatx())
             : tensor;
}

mix_tensor *mix_model_loss_of_outputs(mix_model *model, mix_list *outputs, mix_list *arguments, int inputs,
                                      bool training) {
  const mix_compiled_state *state = model->state;
  outputs_call call = {&state->given, mix_list_new(0, NULL), mix_list_new(0, NULL)};
  for (int i = 0; i < state->output_count; i++) {
    mix_tensor *label = state->missing_labels >> i & 1 ? NULL : mix_list_get(arguments, inputs + i);
    mix_list_append(call.y_true, in_floatx(model, label));
    mix_list_append(call.y_pred, in_floatx(model, mix_list_get(outputs, i)));
  }
  if (state->weight_arguments > 1)
    return mix_fail_value("fit: %d arrays of sample weights for the one outputs_loss of '%s'; give one",
                          state->weight_arguments, mix_model_name(model));
  mix_loss_options options = {.size = sizeof options,
                              .name = "outputs_loss",
                              .semantics = model->semantics,
                              .function = values,
                              .context = &call};
  mix_loss *loss = mix_failed() ? NULL : mix_loss_with(&options);
  if (!loss) return NULL;
  /* A handle without the mask, which is that of one output. */
  mix_tensor *first = mix_list_get(outputs, 0);
  mix_loss_call_options with = {.size = sizeof with,
                                .y_pred = mix_tensor_of(first->node, first->output),
                                .sample_weight =
                                    mix_model_weights_of_samples(model, arguments, inputs, 0, training)};
  return mix_loss_call_with(loss, mix_list_get(arguments, inputs), &with);
}
