#include "compile/inline_call.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/node.h"

enum { MAX_NESTED = 1000 }; /* as Python's limit; deeper calls would overflow the stack */

mix_list *mix_call_inline(mix_function_body body, void *context, const char *name, mix_list *arguments) {
  static _Thread_local int depth;
  if (depth >= MAX_NESTED)
    return mix_fail_runtime(
        "function_call: %s: calls inside calls, %d deep; does a function call itself without an end?", name,
        MAX_NESTED);
  mix_scope *scope = mix_scope_begin();
  depth++;
  mix_list *list = scope ? body(context, arguments) : NULL;
  depth--;
  if (!mix_failed() && list && !mix_is(list, &mix_list_class))
    mix_fail_type("function_call: %s returned an object that is not a list", name);
  if (!mix_failed() && !list) list = mix_list_new(0, NULL);
  if (mix_failed()) list = NULL;
  mix_retain(list);
  mix_scope_end(scope);
  return mix_scoped(list);
}

bool mix_evaluated(mix_list *list, const char *what, const char *name) {
  mix_tensor *small[16], **tensors = small;
  int count = mix_list_count(list);
  if (count > 16 && !(tensors = mix_alloc(sizeof *tensors * (size_t)count))) return false;
  for (int i = 0; i < count && !mix_failed(); i++) {
    tensors[i] = mix_list_get(list, i);
    if (!mix_is(tensors[i], &mix_tensor_class))
      mix_fail_type("function_call: %s %d of %s is %s; expected a tensor", what, i, name,
                    tensors[i] ? "another object" : "NULL");
  }
  bool good = !mix_failed() && mix_evaluate(count, tensors) == MIX_OK;
  if (tensors != small) mix_free(tensors);
  return good;
}
