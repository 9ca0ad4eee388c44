/* Subclassed models: a layer's call function is the forward pass. */
#include "model/model.h"

#include "base/error.h"

static bool counts_valid(const mix_subclassed_options *options) {
  const int counts[] = {options->inputs, options->outputs};
  for (int i = 0; i < 2; i++)
    if (counts[i] < 0 || counts[i] > MIX_MODEL_MAX)
      return mix_fail_value("subclassed: %d %s; expected 1 to %d", counts[i], i ? "outputs" : "inputs",
                            MIX_MODEL_MAX);
  return true;
}

mix_model *mix_subclassed_with(const mix_subclassed_options *given) {
  MIX_OPTIONS(mix_subclassed_options, options, given, "subclassed");
  if (!mix_is(options.layer, &mix_layer_object_class))
    return mix_fail_type("subclassed: layer is %s; expected a layer",
                         options.layer ? "another object" : "NULL");
  if (options.layer->is_model)
    return mix_fail_value("subclassed: '%s' is a model already", mix_layer_name(options.layer));
  if (!counts_valid(&options)) return NULL;
  mix_model *model = mix_model_wrap(options.layer, MIX_SUBCLASSED);
  if (!model) return NULL;
  model->input_count = options.inputs ? options.inputs : 1;
  model->output_count = options.outputs ? options.outputs : 1;
  return model;
}
