/* The end of the models by name. */
#include "cli/models/models.h"

mix_model *cli_end_classifier(mix_tensor *inputs, mix_tensor *x, int64_t classes, const char *pool,
                              const char *name) {
  const mix_dtype dtype = mix_policy_compute_dtype(mix_global_policy());
  const bool narrow = dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
  x = mix_call(mix_global_average_pooling2d(.name = pool), x);
  x = mix_call(
      mix_dense(classes, .activation = "softmax", .name = "predictions", .dtype = narrow ? "float32" : NULL),
      x);
  return mix_model_new(inputs, x, .name = name);
}
