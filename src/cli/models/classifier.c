/* The end of the models by name. */
#include "cli/models/models.h"
#include "tensor/type.h"

const char *cli_output_dtype(void) {
  return mix_dtype_is_16_bit(mix_policy_compute_dtype(mix_global_policy())) ? "float32" : NULL;
}

mix_model *cli_end_classifier(mix_tensor *inputs, mix_tensor *x, int64_t classes, const char *pool,
                              const char *name) {
  x = mix_call(mix_global_average_pooling2d(.name = pool), x);
  x = mix_call(
      mix_dense(classes, .activation = "softmax", .name = "predictions", .dtype = cli_output_dtype()), x);
  return mix_model_new(inputs, x, .name = name);
}
