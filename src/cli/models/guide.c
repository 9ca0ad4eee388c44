/* The model of the Keras guide to mixed precision. */
#include "cli/models/models.h"

mix_model *cli_guide(int64_t width, int64_t units, int64_t classes) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(width), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(classes, .name = "dense_logits"), x);
  /* The softmax of 16-bit logits can overflow and underflow. */
  return mix_model_new(
      inputs, mix_call(mix_activation("softmax", .dtype = cli_output_dtype(), .name = "predictions"), x));
}
