/* ActivityRegularization: passes its input through and adds an L1 and L2 penalty on it. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

static mix_list *activity_regularization_call(mix_layer *layer, const mix_call_args *args) {
  return mix_list_of(mix_call_input(args, 0));
}

/* l1 and l2 stand for the regularizer; Keras accepts nothing else. */
static mix_status activity_regularization_config(mix_layer *layer, mix_config *config) {
  json_object_del(config->object, "activity_regularizer");
  return mix_error();
}

static bool activity_regularization_check(void *options, const mix_layer_kind *kind) {
  mix_activity_regularization_options *o = options;
  if (o->activity_regularizer)
    return mix_fail_value("%s: takes l1 and l2, no activity_regularizer beside them", kind->call);
  o->activity_regularizer =
      mix_regularizer_new("l1_l2", .l1 = o->l1 == 0 ? MIX_ZERO : o->l1, .l2 = o->l2 == 0 ? MIX_ZERO : o->l2);
  return !mix_failed();
}

static mix_layer *activity_regularization_from(const mix_layer_kind *kind, const json_t *config,
                                               void *options) {
  ((mix_activity_regularization_options *)options)->activity_regularizer = NULL;
  return mix_layer_of_kind(kind, options);
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_activity_regularization_options, l1), &mix_field_number},
    {MIX_FIELD(mix_activity_regularization_options, l2), &mix_field_number},
    {0}};
MIX_LAYER_KIND(activity_regularization, mix_activity_regularization_options, .fields = fields,
               .built_from_start = true, .check = activity_regularization_check,
               .from_config = activity_regularization_from, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "ActivityRegularization", .call = activity_regularization_call,
                               .output_shape = mix_layer_same_shape,
                               .get_config = activity_regularization_config, .supports_masking = true))
