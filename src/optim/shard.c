/* Gradients on their way to the ranks that update, and state and weights on their way back. */
#include "optim/shard.h"

#include "backend/communicator.h"
#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "distribute/distribute.h"
#include "graph/divided_variable.h"
#include "graph/node_set.h"
#include "nn/keep.h"
#include "ops/collective.h"
#include "ops/elementwise.h"
#include "ops/with_number.h"
#include "tensor/shape.h"

/* ---- weights of which only 16-bit forms are read ---- */

/* Among the nodes that the gradients come from: the 16-bit dtype to which each read of a variable is cast.
 * `forms` has NONE where nothing reads the variable, and another dtype where something reads it as it is. */
static bool find_forms(const mix_optimizer *optimizer, mix_node_set *set, mix_dtype *forms) {
  for (int n = 0; n < set->count; n++) {
    const mix_node *node = set->nodes[n];
    for (int i = 0; i < node->input_count; i++) {
      mix_node *input = node->inputs[i].node;
      if (!mix_node_set_add(set, input)) return false;
      const int index = input->variable ? mix_optimizer_index(optimizer, input->variable, -1) : -1;
      if (index < 0) continue;
      const mix_dtype as =
          node->op->opcode == MIX_OPCODE_CAST ? node->outputs[0].dtype : input->outputs[0].dtype;
      forms[index] = forms[index] == MIX_DTYPE_NONE || forms[index] == as ? as : input->outputs[0].dtype;
    }
  }
  return true;
}

/* Weights become the parts of their float32 values, where a capture shows that 16-bit copies are enough. */
static bool divide_weights(mix_optimizer *optimizer, mix_list *gradients) {
  const mix_shards *s = optimizer->shards;
  mix_node_set set = {0};
  mix_dtype *forms = mix_calloc((size_t)optimizer->count + 1, sizeof *forms);
  for (int i = 0; forms && i < mix_list_count(gradients) && !mix_failed(); i++) {
    const mix_tensor *gradient = mix_list_get(gradients, i);
    if (gradient) mix_node_set_add(&set, gradient->node);
  }
  bool good = forms && !mix_failed() && find_forms(optimizer, &set, forms);
  for (int i = 0; good && i < optimizer->count; i++) {
    mix_variable *variable = optimizer->trainable[i];
    if (variable->share || variable->dtype != MIX_FLOAT32 || !variable->autocast) continue;
    if (!mix_dtype_is_16_bit(forms[i]) || s->summed[i] == MIX_DTYPE_NONE) continue;
    good = mix_variable_divide(variable, s->divisions[i], s->rank, s->ranks, s->clock, forms[i]);
  }
  mix_node_set_clear(&set);
  mix_free(forms);
  return good;
}

/* Norms of a gradient are those of all rows, in one order whoever has them. */
static bool needs_all_rows(const mix_optimizer *optimizer, int index) {
  return optimizer->shards->divisions[index].owner == MIX_BY_ROWS && mix_shards_clip_by_norm(optimizer);
}

static mix_tensor *start_sum(const mix_optimizer *optimizer, int index, mix_tensor *gradient) {
  const mix_shards *s = optimizer->shards;
  if (mix_tensor_is_rows(gradient)) gradient = mix_identity(gradient); /* dense */
  gradient = mix_before_upcast(gradient);
  return needs_all_rows(optimizer, index)
             ? mix_all_reduce_start(gradient)
             : mix_reduce_scatter_start(gradient, s->divisions[index], s->rank, s->ranks);
}

static bool sum_gradients(const mix_optimizer *optimizer, int count, const int *indices, mix_list *gradients,
                          mix_tensor **sums) {
  for (int i = count; i-- > 0 && !mix_failed();)
    if (indices[i] >= 0) sums[i] = start_sum(optimizer, indices[i], mix_list_get(gradients, i));
  int ended_count = 0;
  mix_tensor **ended = mix_calloc((size_t)count + 1, sizeof *ended);
  for (int i = count; ended && i-- > 0 && !mix_failed();) {
    if (indices[i] < 0) continue;
    sums[i] = needs_all_rows(optimizer, indices[i]) ? mix_all_reduce_done(sums[i])
                                                    : mix_reduce_scatter_done(sums[i]);
    ended[ended_count++] = sums[i];
  }
  /* Outside functions nothing else would run those whose sums this rank does not read. */
  if (!mix_failed() && !mix_capture_current()) mix_evaluate(ended_count, ended);
  mix_free(ended);
  return !mix_failed();
}

mix_list *mix_shards_sum(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables) {
  const int count = mix_list_count(gradients);
  mix_shards *s = optimizer->shards;
  int *indices = mix_calloc((size_t)count + 1, sizeof *indices);
  mix_tensor **sums = mix_calloc((size_t)count + 1, sizeof *sums);
  for (int i = 0; i < optimizer->count; i++) s->summed[i] = MIX_DTYPE_NONE;
  for (int i = 0; indices && i < count; i++) {
    const mix_tensor *gradient = mix_list_get(gradients, i);
    const mix_variable *variable = mix_list_get(variables, i);
    indices[i] = gradient && !mix_optimizer_overwrites(optimizer, variable)
                     ? mix_optimizer_index(optimizer, variable, i)
                     : -1;
    if (indices[i] < 0) continue;
    if (!mix_shape_equal(mix_tensor_shape(gradient), variable->shape)) {
      mix_fail_value("%s: the gradient of '%s' has shape %s; expected %s", optimizer->name, variable->name,
                     MIX_SHAPE_TEXT(mix_tensor_shape(gradient)), MIX_SHAPE_TEXT(variable->shape));
      break;
    }
    s->summed[indices[i]] = mix_tensor_dtype(gradient);
  }
  mix_list *result = NULL;
  if (mix_capture_current() && !mix_failed()) divide_weights(optimizer, gradients);
  if (indices && sums && !mix_failed() && sum_gradients(optimizer, count, indices, gradients, sums)) {
    for (int i = 0; i < count; i++) {
      if (indices[i] < 0) continue;
      const bool held = needs_all_rows(optimizer, indices[i]) || mix_shards_holds(optimizer, indices[i]);
      sums[i] = held ? mix_cast(sums[i], s->summed[indices[i]]) : NULL;
    }
    result = mix_list_new(count, (void *const *)sums);
  }
  mix_free(indices);
  mix_free(sums);
  return mix_failed() ? NULL : result;
}

mix_tensor *mix_shards_all_finite(const mix_optimizer *optimizer, mix_list *gradients) {
  mix_tensor *own = mix_all_finite_of(gradients);
  if (!own || !optimizer->shards) return own;
  mix_tensor *bad = mix_kept(mix_cast(mix_kept(mix_logical_not(own)), MIX_INT32));
  return mix_kept(mix_equal(mix_kept(mix_all_reduce(bad)), mix_scalar(0, MIX_INT32)));
}

bool mix_shards_gives(const mix_optimizer *optimizer, int index) {
  return needs_all_rows(optimizer, index) ? optimizer->shards->rank == 0 : mix_shards_holds(optimizer, index);
}

bool mix_shards_share_scalars(int count, mix_tensor **scalars, mix_dtype dtype) {
  for (int i = 0; i < count; i++)
    scalars[i] = mix_reshape(scalars[i] ? scalars[i] : mix_scalar(0, dtype), MIX_SHAPE(1));
  mix_tensor *all = mix_all_reduce(count == 1 ? scalars[0] : mix_concat(count, scalars, 0));
  for (int i = 0; i < count && !mix_failed(); i++)
    scalars[i] = mix_reshape(mix_slice(all, MIX_SHAPE(i), MIX_SHAPE(1)), MIX_SHAPE());
  return !mix_failed();
}

/* ---- the state between updates ---- */

mix_tensor *mix_shards_value(mix_variable *variable) {
  const mix_variable_share *share = variable->share;
  if (!share) return mix_variable_true_value(variable);
  mix_tensor *own = share->part ? mix_variable_true_value(share->part) : mix_scalar(0, variable->dtype);
  mix_tensor *whole = mix_collect_shares(own, variable->shape, share->division, share->rank, share->ranks);
  return whole && mix_evaluate(1, &whole) == MIX_OK ? whole : NULL;
}

/* Of weights and state, in one order on all ranks. NULL with the error recorded; mix_free it. */
static mix_variable **list_divided(const mix_optimizer *optimizer, int *count) {
  const int states = mix_list_count(optimizer->variables);
  mix_variable **divided = mix_calloc((size_t)(optimizer->count + states) + 1, sizeof *divided);
  *count = 0;
  for (int i = 0; divided && i < optimizer->count; i++)
    if (optimizer->trainable[i]->share) divided[(*count)++] = optimizer->trainable[i];
  for (int i = 0; divided && i < states; i++) {
    mix_variable *variable = mix_list_get(optimizer->variables, i);
    if (variable->share) divided[(*count)++] = variable;
  }
  return divided;
}

/* The rows of the value of rank 0, which alone has one here. */
static bool take_from_first(mix_variable *variable) {
  const bool first = variable->share->rank == 0;
  mix_tensor *value =
      first ? mix_variable_true_value(variable) : mix_fill(variable->shape, 0, variable->dtype);
  value = mix_broadcast(value, 0);
  return value && mix_variable_assign(variable, value) == MIX_OK;
}

bool mix_shards_share_state(mix_optimizer *optimizer) {
  if (!optimizer->built || !mix_shards_match(optimizer)) return !mix_failed();
  if (!optimizer->shards) return true;
  int count;
  mix_variable **divided = list_divided(optimizer, &count);
  int64_t *own = mix_calloc((size_t)count + 1, sizeof *own),
          *given = mix_calloc((size_t)(count + 1) * (size_t)optimizer->shards->ranks, sizeof *given);
  for (int i = 0; divided && own && i < count; i++) own[i] = mix_variable_was_assigned(divided[i]);
  if (!mix_failed() && mix_gather_integers("fit", count + 1, own, given))
    for (int i = 0; i < count && !mix_failed(); i++)
      MIX_SCOPE {
        if (given[i] && !take_from_first(divided[i])) break;
      }
  for (int i = 0; i < count && !mix_failed(); i++)
    if (!mix_variable_has_narrow(divided[i])) mix_variable_drop_whole(divided[i]);
  mix_free(divided);
  mix_free(own);
  mix_free(given);
  return !mix_failed();
}

static bool gather_variable(mix_variable *variable, int rank) {
  bool good = false;
  MIX_SCOPE {
    mix_tensor *whole = mix_shards_value(variable);
    good = whole != NULL;
    if (good && (rank == MIX_EVERY_RANK || rank == variable->share->rank))
      good = mix_variable_set_gathered(variable, mix_tensor_value(whole)->memory);
  }
  return good;
}

mix_status mix_optimizer_gather_state(mix_optimizer *optimizer, int rank) {
  static const char call[] = "optimizer_gather_state";
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "%s: no optimizer", call);
  if (rank < MIX_EVERY_RANK || rank >= mix_rank_count())
    return mix_fail_status(MIX_VALUE_ERROR, "%s: rank is %d; expected a rank from 0 to %d, or MIX_EVERY_RANK",
                           call, rank, mix_rank_count() - 1);
  if (mix_capture_current())
    return mix_fail_status(MIX_RUNTIME_ERROR, "%s: it is called in a captured function; call it outside",
                           call);
  optimizer = mix_optimizer_plain(optimizer);
  const mix_shards *s = optimizer->shards;
  const mix_communicator *c = mix_communicator_in_force();
  if (!s) return MIX_OK;
  if (!c || c->number != s->communicator)
    return mix_fail_status(MIX_RUNTIME_ERROR,
                           "%s: the state of %s is divided among the ranks of another distribution; call it "
                           "while that one is set",
                           call, optimizer->name);
  int count;
  mix_variable **divided = list_divided(optimizer, &count);
  for (int i = 0; divided && i < count && !mix_failed(); i++) gather_variable(divided[i], rank);
  mix_free(divided);
  return mix_error();
}

bool mix_shards_gather_weights(mix_optimizer *optimizer) {
  optimizer = mix_optimizer_plain(optimizer);
  for (int i = 0; optimizer->shards && i < optimizer->count && !mix_failed(); i++)
    if (optimizer->trainable[i]->share) gather_variable(optimizer->trainable[i], MIX_EVERY_RANK);
  return !mix_failed();
}

bool mix_shards_drop_gathered(mix_optimizer *optimizer) {
  optimizer = mix_optimizer_plain(optimizer);
  for (int i = 0; optimizer->shards && i < mix_list_count(optimizer->variables) && !mix_failed(); i++) {
    mix_variable *variable = mix_list_get(optimizer->variables, i);
    if (variable->share && !mix_variable_was_assigned(variable)) mix_variable_drop_whole(variable);
  }
  return !mix_failed();
}
