/* Collectives on tensors, variables and gradients. */
#include "distribute/distribute.h"

#include "base/error.h"
#include "compile/evaluate.h"
#include "ops/collective.h"

/* Outside functions nobody knows when, or on which ranks, a lazy value would be read. */
static mix_tensor *at_once(mix_tensor *x) {
  if (!x || mix_capture_current() || x->node->symbolic) return x;
  return mix_evaluate_nodes(1, &x->node) ? x : NULL;
}

mix_tensor *mix_all_reduce(mix_tensor *x) {
  if (!mix_given(x, &mix_tensor_class, "all_reduce", "a tensor")) return NULL;
  return mix_is_distributed() ? at_once(mix_all_reduce_done(mix_all_reduce_start(x))) : x;
}

bool mix_all_reduce_together(int count, mix_tensor **values) {
  if (!mix_is_distributed()) return !mix_failed();
  for (int i = 0; i < count; i++)
    if (values[i]) values[i] = mix_all_reduce_start(values[i]);
  for (int i = 0; i < count && !mix_failed(); i++)
    if (values[i]) values[i] = mix_all_reduce_done(values[i]);
  for (int i = 0; i < count && !mix_failed(); i++) at_once(values[i]);
  return !mix_failed();
}

mix_tensor *mix_broadcast(mix_tensor *x, int root) {
  if (!mix_given(x, &mix_tensor_class, "broadcast", "a tensor")) return NULL;
  if (root < 0 || root >= mix_rank_count())
    return mix_fail_value("broadcast: root is %d; expected a rank from 0 to %d", root, mix_rank_count() - 1);
  return mix_is_distributed() ? at_once(mix_broadcast_from(x, root)) : x;
}

mix_tensor *mix_all_gather(mix_tensor *x) {
  if (!mix_given(x, &mix_tensor_class, "all_gather", "a tensor")) return NULL;
  return mix_is_distributed() ? at_once(mix_all_gather_of(x, mix_rank_count())) : x;
}

void mix_rank_share(int64_t rows, int64_t *first, int64_t *count) {
  const int64_t rank = mix_rank(), ranks = mix_rank_count();
  const int64_t each = rows / ranks, more = rows % ranks;
  *first = each * rank + (rank < more ? rank : more);
  *count = each + (rank < more);
}

/* ---- gradients ---- */

mix_list *mix_sum_gradients(mix_list *gradients) {
  if (!gradients || !mix_is_distributed()) return gradients;
  const int count = mix_list_count(gradients);
  mix_list *pending = mix_list_new(0, NULL);
  for (int i = count; pending && i-- > 0;) {
    mix_tensor *gradient = mix_list_get(gradients, i);
    if (gradient && mix_tensor_is_rows(gradient)) gradient = mix_identity(gradient); /* dense */
    mix_list_append(pending, gradient ? mix_all_reduce_start(mix_before_upcast(gradient)) : NULL);
  }
  mix_tensor *ended[count + 1]; /* no more than a model has variables */
  for (int i = count; i-- > 0 && !mix_failed();) {
    mix_tensor *started = mix_list_get(pending, count - 1 - i), *gradient = mix_list_get(gradients, i);
    ended[i] = started ? mix_cast(mix_all_reduce_done(started), mix_tensor_dtype(gradient)) : NULL;
  }
  return mix_failed() ? NULL : mix_list_new(count, (void *const *)ended);
}

/* ---- variables ---- */

mix_status mix_broadcast_variables(mix_list *variables) {
  const int count = mix_list_count(variables); /* which checks the list in a single process too */
  if (mix_failed() || !mix_is_distributed()) return mix_error();
  for (int i = 0; i < count && !mix_failed(); i++)
    MIX_SCOPE {
      mix_variable *variable = mix_list_get(variables, i);
      if (mix_given(variable, &mix_variable_class, "broadcast_variables", "a variable"))
        mix_variable_assign(variable, mix_broadcast(mix_variable_true_value(variable), 0));
    }
  return mix_error();
}
