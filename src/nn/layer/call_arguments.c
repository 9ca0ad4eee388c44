/* What a layer's call was given. */
#include "base/error.h"
#include "nn/layer/layer.h"

mix_tensor *mix_call_input(const mix_call_args *args, int index) {
  return mix_given(args, NULL, "call_input", "what the layer's call was given")
             ? mix_list_get(args->inputs, index)
             : NULL;
}
mix_tensor *mix_call_argument(const mix_call_args *args, int index) {
  if (!mix_given(args, NULL, "call_argument", "what the layer's call was given")) return NULL;
  if (!args->arguments)
    return mix_fail_type("layer call: argument %d is missing; pass it in .arguments", index);
  return mix_list_get(args->arguments, index);
}
