#include "update_candidate.h"

static mix_list *update_body(void *context, mix_list *arguments) {
  bench_update_step *x = context;
  mix_tensor *half = x->writes_float16 ? mix_cast(mix_variable_value(x->variable), MIX_FLOAT16) : NULL;
  mix_tensor *used = half ? mix_slice(half, MIX_SHAPE(0, 0), MIX_SHAPE(1, 1)) : NULL;
  mix_optimizer_apply_gradients(x->optimizer, arguments, mix_list_of(x->variable));
  return used ? mix_list_of(used) : NULL;
}

bool bench_update_prepare(bench_update_step *x, mix_optimizer *optimizer, mix_tensor *gradient,
                          bool writes_float16) {
  *x = (bench_update_step){.optimizer = optimizer, .writes_float16 = writes_float16};
  if (!gradient || mix_evaluate(1, &gradient) != MIX_OK) return false;
  x->variable = mix_variable_new(mix_fill(mix_tensor_shape(gradient), 0.5, MIX_FLOAT32));
  x->function = mix_function_new(update_body, x, .name = "update");
  x->arguments = mix_list_of(gradient);
  return x->arguments && mix_optimizer_build(x->optimizer, mix_list_of(x->variable)) == MIX_OK;
}

bool bench_update_run(void *context) {
  bench_update_step *x = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(x->function, x->arguments) != NULL; }
  return good;
}
