/* A model's structure as text, in the form of Keras's model.to_json(), and back. Scale is a layer of our own
 * with an option: it writes the option into its config and takes it from there, and is registered by name. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <string.h>

typedef struct scale {
  double factor;
} scale;

static mix_list *scale_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  return mix_list_of(mix_multiply(x, mix_scalar_like(x, ((scale *)mix_layer_data(layer))->factor)));
}
static mix_status scale_get_config(mix_layer *layer, mix_config *config) {
  return mix_config_number(config, "factor", ((scale *)mix_layer_data(layer))->factor);
}
static mix_status scale_from_config(mix_layer *layer, mix_config *config) {
  ((scale *)mix_layer_data(layer))->factor = mix_config_get_number(config, "factor", 1);
  return mix_error();
}
static const mix_layer_class scale_class = {.size = sizeof(mix_layer_class),
                                            .name = "Scale",
                                            .instance_size = sizeof(scale),
                                            .call = scale_call,
                                            .get_config = scale_get_config,
                                            .from_config = scale_from_config};

static mix_layer *scale_by(double factor) {
  mix_layer *layer = mix_layer_new(&scale_class);
  if (layer) ((scale *)mix_layer_data(layer))->factor = factor;
  return layer;
}

static double first_result(mix_model *model, mix_tensor *x) {
  mix_tensor *y = mix_reshape(mix_model_call(model, x), MIX_SHAPE(-1));
  float values[3] = {0};
  mix_tensor_read(y, MIX_FLOAT32, values, 3);
  return values[0];
}

int main(void) {
  mix_scope *scope = mix_scope_begin();
  mix_set_semantics("keras3");
  mix_register_layer("example", NULL, &scale_class);

  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(3, .dtype = "mixed_float16", .name = "half"), x);
  mix_model *model = mix_model_new(x, mix_call(scale_by(0.5), y), .name = "scaled");
  const char *text = mix_model_to_json(model);
  if (text) printf("registered as example>Scale: %s\n", strstr(text, "example>Scale") ? "yes" : "no");

  mix_model *again = mix_model_from_json(text); /* new weights */
  mix_model_set_weights(again, mix_model_get_weights(model));
  mix_tensor *data = mix_fill(MIX_SHAPE(1, 4), 1, MIX_FLOAT32);
  printf("policy of 'half': %s\n", mix_policy_name(mix_layer_policy(mix_model_get_layer(again, "half"))));
  printf("same results: %s\n", first_result(model, data) == first_result(again, data) ? "yes" : "no");

  mix_model *clone = mix_model_clone(model); /* new weights, too */
  printf("layers of the clone: %d\n", mix_list_count(mix_model_layers(clone)));

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
