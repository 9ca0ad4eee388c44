/* A variable of an optimizer's state, made outside of whatever is being captured. */
#include "compile/assign.h"
#include "optim/optimizer.h"

mix_variable *mix_optimizer_variable(const char *name, mix_tensor *(*initial)(const void *),
                                     const void *context) {
  mix_capture *capture = mix_capture_set(NULL);
  mix_dtype cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  mix_scope *scope = mix_scope_begin();
  const mix_variable_options options = {
      .size = sizeof options, .initial_value = initial(context), .name = name, .not_trainable = true};
  mix_variable *variable = mix_retain(mix_variable_take(&options));
  if (scope) mix_scope_end(scope);
  mix_cast_dtype_set(cast);
  mix_capture_set(capture);
  return variable;
}
