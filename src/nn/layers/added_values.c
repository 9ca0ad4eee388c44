/* AddLoss and AddMetric: what tf_keras makes of add_loss and add_metric of a functional model, which files
 * have as layers. They pass their input through. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct add_loss_options {
  size_t size;
  MIX_LAYER_OPTIONS
  bool unconditional; /* the loss depends on no input, which changes nothing here */
} add_loss_options;

typedef struct add_metric_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *aggregation, *metric_name;
} add_metric_options;

static mix_list *add_loss_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->symbolic && mix_layer_add_loss(layer, x)) return NULL;
  return mix_list_of(x);
}

static mix_list *add_metric_call(mix_layer *layer, const mix_call_args *args) {
  const add_metric_options *options = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!args->symbolic && mix_layer_add_metric(layer, x, options->metric_name)) return NULL;
  return mix_list_of(x);
}

static const mix_field_row loss_fields[] = {{MIX_FIELD(add_loss_options, unconditional), &mix_field_boolean},
                                            {0}};
/* None is that of a metric object, of which a file has nothing but its value. */
static const mix_field_row metric_fields[] = {
    {MIX_FIELD(add_metric_options, aggregation), &mix_field_text, .optional = true, .choices = "mean"},
    {MIX_FIELD(add_metric_options, metric_name), &mix_field_text, .required = true},
    {0}};

#define ADDED(adds, class_name, rows, ...)                                                                   \
  const mix_layer_kind mix_##adds##_kind = {.call = #adds,                                                   \
                                            .options_size = sizeof(adds##_options),                          \
                                            .fields = rows,                                                  \
                                            .module = "tf_keras.src.engine.base_layer",                      \
                                            .tf_keras_only = true,                                           \
                                            MIX_LAYER_CLASS(.name = class_name, .call = adds##_call,         \
                                                            .output_shape = mix_layer_same_shape,            \
                                                            __VA_ARGS__)};
/* A loss is not cast to 16 bits. */
ADDED(add_loss, "AddLoss", loss_fields, .no_autocast = true)
ADDED(add_metric, "AddMetric", metric_fields)
