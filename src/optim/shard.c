/* Who holds which state, gradients on their way there, and weights on their way back (Rajbhandari et al.,
 * ZeRO: Memory optimizations toward training trillion parameter models, 2020, its first stage). */
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
#include <stdlib.h>

/* A variable of more than this part of a rank's fair share is divided by rows, so that shares differ little.
 */
enum { PARTS_OF_FAIR_SHARE = 8 };

bool mix_shards_wanted(void) {
  const mix_communicator *c = mix_communicator_in_force();
  return c && c->shards_optimizer;
}

void mix_shards_free(mix_shards *shards) {
  if (!shards) return;
  mix_release(shards->clock);
  mix_free(shards->divisions);
  mix_free(shards->summed);
  mix_free(shards);
}

/* ---- owners ---- */

typedef struct item {
  int index;
  size_t bytes;
} item;

static int larger_first(const void *x, const void *y) {
  const item *a = x, *b = y;
  return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : a->index - b->index;
}

static bool clips_by_norm(const mix_optimizer *optimizer) {
  return optimizer->options.common.clipnorm > 0 || optimizer->options.common.global_clipnorm > 0;
}

/* Are its rows updated each by itself? Norms of accumulated gradients need all rows of the accumulators. */
static bool has_rows(const mix_optimizer *optimizer, const mix_variable *variable, int ranks) {
  if (mix_optimizer_idle_changes(optimizer) & MIX_IDLE_DENSE || variable->constraint) return false;
  if (optimizer->options.common.gradient_accumulation_steps && clips_by_norm(optimizer)) return false;
  const mix_division division = mix_division_of(variable->shape, MIX_BY_ROWS);
  return variable->shape.rank && mix_division_reaches(&division, ranks);
}

/* From shapes alone, so that all ranks choose the same: first what is divided by rows, then the largest
 * variable to the rank that has least. */
static bool choose_owners(const mix_optimizer *optimizer, mix_shards *s) {
  item *items = mix_calloc((size_t)optimizer->count + 1, sizeof *items);
  size_t *loads = mix_calloc((size_t)s->ranks, sizeof *loads), total = 0;
  for (int i = 0; items && i < optimizer->count; i++) {
    const mix_variable *variable = optimizer->trainable[i];
    items[i] = (item){i, mix_value_bytes(variable->dtype, variable->shape)};
    total += items[i].bytes;
  }
  if (items) qsort(items, (size_t)optimizer->count, sizeof *items, larger_first);
  for (int i = 0; items && loads && i < optimizer->count; i++) {
    const mix_variable *variable = optimizer->trainable[items[i].index];
    int owner = 0;
    for (int r = 1; r < s->ranks; r++)
      if (loads[r] < loads[owner]) owner = r;
    const size_t fair = total / (size_t)s->ranks;
    if (items[i].bytes > fair / PARTS_OF_FAIR_SHARE && has_rows(optimizer, variable, s->ranks))
      owner = MIX_BY_ROWS;
    else
      loads[owner] += items[i].bytes;
    s->divisions[items[i].index] = mix_division_of(variable->shape, owner);
  }
  mix_free(items);
  mix_free(loads);
  return !mix_failed();
}

static mix_tensor *zero_clock(const void *context) { return mix_scalar(0, MIX_INT64); }

bool mix_shards_plan(mix_optimizer *optimizer) {
  const mix_communicator *c = mix_communicator_in_force();
  mix_shards *s = mix_calloc(1, sizeof *s);
  if (!s) return false;
  s->communicator = c->number, s->rank = c->rank, s->ranks = c->ranks;
  s->divisions = mix_calloc((size_t)optimizer->count + 1, sizeof *s->divisions);
  s->summed = mix_calloc((size_t)optimizer->count + 1, sizeof *s->summed);
  s->clock = mix_optimizer_variable("clock", zero_clock, NULL);
  if (!s->clock || !s->divisions || !s->summed || !choose_owners(optimizer, s))
    return mix_shards_free(s), false;
  optimizer->shards = s;
  return true;
}

bool mix_shards_divide(const mix_optimizer *optimizer, mix_variable *state, int index) {
  const mix_shards *s = optimizer->shards;
  mix_division division = s->divisions[index];
  /* Factors of a matrix live with its owner. */
  if (division.owner != MIX_BY_ROWS) division = mix_division_of(state->shape, division.owner);
  return mix_variable_divide(state, division, s->rank, s->ranks, s->clock, MIX_DTYPE_NONE);
}

/* Calls `act` for the state of each variable that is, or could be, divided. */
static bool for_all_state(mix_optimizer *optimizer,
                          bool (*act)(const mix_optimizer *optimizer, mix_variable *state, int index)) {
  mix_variable **arrays[MIX_MAX_SLOTS + 2] = {optimizer->averages, optimizer->accumulators};
  for (int i = 0; i < MIX_MAX_SLOTS; i++) arrays[2 + i] = optimizer->slots[i];
  for (int a = 0; a < MIX_MAX_SLOTS + 2; a++)
    for (int i = 0; arrays[a] && i < optimizer->count; i++)
      if (arrays[a][i] && !mix_optimizer_overwrites(optimizer, optimizer->trainable[i]) &&
          !act(optimizer, arrays[a][i], i))
        return false;
  return true;
}

static bool check_state(const mix_optimizer *optimizer, mix_variable *state, int index) {
  return mix_variable_check_here(state, optimizer->name);
}
static bool rejoin_state(const mix_optimizer *optimizer, mix_variable *state, int index) {
  mix_variable_rejoin(state);
  return true;
}

bool mix_shards_match(mix_optimizer *optimizer) {
  const mix_communicator *c = mix_communicator_in_force();
  const bool wanted = mix_shards_wanted(), has = optimizer->shards != NULL;
  if (!optimizer->built || (has && wanted && optimizer->shards->communicator == c->number)) return true;
  if (!has && !wanted) return true;
  if (has) {
    if (!for_all_state(optimizer, check_state)) return false;
    for (int i = 0; i < optimizer->count; i++)
      if (!mix_variable_check_here(optimizer->trainable[i], optimizer->name)) return false;
    for_all_state(optimizer, rejoin_state);
    for (int i = 0; i < optimizer->count; i++) mix_variable_rejoin(optimizer->trainable[i]);
    mix_shards_free(optimizer->shards);
    optimizer->shards = NULL;
  }
  mix_capture_epoch_move(); /* functions use the variables of the former form */
  return !wanted || (mix_shards_plan(optimizer) && for_all_state(optimizer, mix_shards_divide));
}

/* ---- an update ---- */

bool mix_shards_holds(const mix_optimizer *optimizer, int index) {
  const mix_shards *s = optimizer->shards;
  return !s || mix_division_rows(&s->divisions[index], s->ranks, s->rank) > 0;
}

bool mix_shards_sets(const mix_optimizer *optimizer, int index) {
  const mix_optimizer_common *options = &optimizer->options.common;
  if (mix_optimizer_overwrites(optimizer, optimizer->trainable[index])) return false;
  if (optimizer->shards->summed[index] != MIX_DTYPE_NONE) return true;
  return optimizer->averages && options->ema_overwrite_frequency && !optimizer->rules->ema_starts_at_weight;
}

mix_tensor *mix_shards_rows(const mix_optimizer *optimizer, int index, mix_tensor *whole) {
  const mix_shards *s = optimizer->shards;
  if (!s || s->divisions[index].owner != MIX_BY_ROWS || !whole) return whole;
  const mix_division *division = &s->divisions[index];
  mix_shape begin = mix_tensor_shape(whole), size = begin;
  if (begin.dims[0] != division->rows) return whole; /* they are the rows */
  for (int i = 0; i < begin.rank; i++) begin.dims[i] = 0;
  begin.dims[0] = mix_division_row(division, s->ranks, s->rank);
  size.dims[0] = mix_division_rows(division, s->ranks, s->rank);
  return mix_slice(whole, begin, size);
}

mix_tensor *mix_shards_whole(const mix_optimizer *optimizer, int index, mix_tensor *own) {
  const mix_shards *s = optimizer->shards;
  const mix_variable *variable = optimizer->trainable[index];
  const mix_dtype sent = mix_variable_has_narrow(variable) ? variable->share->narrow : variable->dtype;
  own = own ? mix_kept(mix_cast(own, sent)) : mix_scalar(0, sent);
  mix_tensor *whole = mix_collect_shares(own, variable->shape, s->divisions[index], s->rank, s->ranks);
  return mix_kept(mix_cast(mix_kept(whole), variable->dtype));
}

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
  return optimizer->shards->divisions[index].owner == MIX_BY_ROWS && clips_by_norm(optimizer);
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

bool mix_shards_check_here(mix_optimizer *optimizer) {
  optimizer = mix_optimizer_plain(optimizer);
  return !optimizer->shards || for_all_state(optimizer, check_state);
}
