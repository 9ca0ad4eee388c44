/* The pending assignments of one update. All values are collected first and then assigned together. A
 * failure half way therefore changes nothing, and each variable is written once after decay, rule, average
 * and constraint. What is kept in bfloat16 is rounded at the end. */
#include "base/alloc.h"
#include "base/error.h"
#include "graph/divided_variable.h"
#include "ops/stochastic_round.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "optim/shard.h"
#include "tensor/shape.h"

bool mix_update_begin(mix_update *update, mix_optimizer *optimizer, mix_tensor *guard) {
  *update = (mix_update){.optimizer = optimizer, .guard = guard, .scope = mix_scope_begin()};
  return update->scope != NULL;
}

mix_dtype mix_update_dtype(const mix_update *update, const mix_variable *variable) {
  const bool rounds = update->optimizer->rounding != MIX_STATE_UNROUNDED && variable->dtype == MIX_BFLOAT16;
  return rounds ? MIX_FLOAT32 : variable->dtype;
}

/* What keeps the part of a weight that rounding takes; NULL: nothing, or another rank has it. */
static mix_variable *compensation_of(const mix_update *update, const mix_variable *variable) {
  const mix_optimizer *optimizer = update->optimizer;
  if (!optimizer->compensations || variable->dtype != MIX_BFLOAT16) return NULL;
  const int index = mix_optimizer_index(optimizer, variable, update->gradient);
  mix_variable *compensation = index >= 0 ? optimizer->compensations[index] : NULL;
  return compensation && compensation->share ? compensation->share->part : compensation;
}

static mix_pending *find_itself(mix_update *update, mix_variable *variable) {
  /* Backwards: most look-ups are for a recent entry. */
  for (int i = update->count - 1; i >= 0; i--)
    if (update->pending[i].variable == variable) return &update->pending[i];
  if (!mix_reserve(&update->pending, &update->capacity, update->count + 1, sizeof *update->pending))
    return NULL;
  mix_tensor *value = mix_variable_true_value(variable);
  const int index = update->optimizer->shards ? mix_optimizer_index(update->optimizer, variable, -1) : -1;
  if (index >= 0 && !variable->share) value = mix_shards_rows(update->optimizer, index, value);
  if (!value) return NULL;
  mix_tensor *wide = mix_cast(value, mix_update_dtype(update, variable));
  mix_variable *compensation = compensation_of(update, variable);
  if (compensation)
    wide = mix_add(wide, mix_cast(mix_variable_true_value(compensation), mix_tensor_dtype(wide)));
  if (!wide) return NULL;
  mix_pending *entry = &update->pending[update->count++];
  *entry = (mix_pending){.variable = variable, .old = value, .wide = wide};
  return entry;
}

static mix_pending *find(mix_update *update, mix_variable *variable) {
  if (variable->share) variable = variable->share->part;
  return variable ? find_itself(update, variable) : NULL; /* NULL: another rank has it */
}

/* The value so far of a variable that no part has changed. */
static mix_tensor *value_before_parts(const mix_pending *entry) {
  return entry->value ? entry->value : entry->wide;
}

/* Joins the parts of a value. */
static void join_parts(mix_pending *entry) {
  if (!entry->rows) return;
  mix_tensor *others = entry->idle ? entry->idle : value_before_parts(entry);
  entry->value = mix_replace_rows(others, entry->indices, entry->rows);
  entry->rows = entry->idle = NULL;
}

static mix_tensor *whole_value(mix_pending *entry) {
  join_parts(entry);
  if (!entry->value) return entry->wide;
  if (entry->condition) {
    entry->value = mix_select(entry->condition, entry->value, entry->wide);
    entry->condition = NULL;
  }
  return entry->value;
}

/* Is the variable one of those that the current part divides: the weight, or state of its shape? */
static bool is_divided(const mix_update *update, const mix_variable *variable) {
  return update->part != MIX_PART_WHOLE && mix_shape_equal(variable->shape, update->of->variable->shape);
}

mix_tensor *mix_update_get(mix_update *update, mix_variable *variable) {
  mix_pending *entry = variable ? find(update, variable) : NULL;
  if (!entry) return NULL;
  if (!is_divided(update, variable)) return whole_value(entry);
  if (update->part == MIX_PART_IDLE) return entry->idle ? entry->idle : value_before_parts(entry);
  return entry->rows ? entry->rows : mix_gather_rows(value_before_parts(entry), update->of->indices);
}

/* Does the variable change in rows that have no gradient? */
static bool changes_idle(const mix_update *update, const mix_variable *variable) {
  const mix_optimizer *optimizer = update->optimizer;
  if (variable == update->of->variable) return update->idle & MIX_IDLE_WEIGHT;
  const int index = mix_optimizer_index(optimizer, update->of->variable, update->gradient);
  for (int i = 0; i < MIX_MAX_SLOTS; i++)
    if (optimizer->slots[i] && optimizer->slots[i][index] == variable) return update->idle >> i & 1;
  return true;
}

static void set_part(const mix_update *update, mix_pending *entry, mix_tensor *value) {
  if (update->part == MIX_PART_ROWS) {
    entry->rows = value;
    entry->indices = update->of->indices;
  } else if (changes_idle(update, entry->variable)) {
    entry->idle = value;
  }
}

void mix_update_set(mix_update *update, mix_variable *variable, mix_tensor *value) {
  mix_pending *entry = variable && value ? find(update, variable) : NULL;
  if (!entry) return;
  if (is_divided(update, variable)) {
    set_part(update, entry, value);
    return;
  }
  entry->value = value;
  entry->rows = entry->idle = entry->condition = NULL;
}

void mix_update_begin_parts(mix_update *update, const mix_variable *variable, unsigned idle) {
  update->of = NULL;
  for (int i = 0; update->gradients && i < update->gradient_count; i++)
    if (update->gradients[i].variable == variable && update->gradients[i].values)
      update->of = &update->gradients[i];
  update->part = MIX_PARTS;
  update->idle = idle;
}

bool mix_update_next_part(mix_update *update) {
  if (update->part == MIX_PARTS)
    update->part = update->of && update->of->sums ? MIX_PART_ROWS : MIX_PART_WHOLE;
  else if (update->part == MIX_PART_ROWS && update->idle)
    update->part = MIX_PART_IDLE;
  else
    return update->part = MIX_PART_WHOLE, update->of = NULL, false;
  return true;
}

bool mix_update_keeps_repeats(const mix_update *update) {
  return update->of && update->part != MIX_PART_IDLE && !update->optimizer->rules->sparse_repeats_summed;
}

/* f(gradient). keras3: the sums of f over the rows with the same index. */
static mix_tensor *of_gradient(const mix_update *update, mix_tensor *gradient, mix_tensor *f(mix_tensor *)) {
  if (!mix_update_keeps_repeats(update)) return f(gradient);
  const mix_update_gradient *of = update->of;
  const int64_t rows = of->variable->shape.dims[0];
  return of->sums ? mix_combine_rows(f(of->values), of->value_indices, rows, NULL)
                  : mix_segment_sum(f(of->values), of->value_indices, rows);
}

mix_tensor *mix_update_gradient_square(mix_update *update, mix_tensor *gradient) {
  return of_gradient(update, gradient, mix_square);
}

mix_tensor *mix_update_gradient_abs(mix_update *update, mix_tensor *gradient) {
  return of_gradient(update, gradient, mix_abs);
}

void mix_update_condition(mix_update *update, mix_tensor *condition) {
  for (int i = 0; i < update->count; i++) {
    mix_pending *entry = &update->pending[i];
    if (entry->value)
      entry->condition = entry->condition ? mix_logical_and(entry->condition, condition) : condition;
  }
}

void mix_update_unguard(mix_update *update, mix_variable *variable) {
  mix_pending *entry = find(update, variable);
  if (entry) entry->unguarded = true;
}

mix_tensor *mix_update_learning_rate(mix_update *update, mix_dtype dtype) {
  if (update->learning_rate[dtype]) return update->learning_rate[dtype];
  mix_optimizer *optimizer = update->optimizer;
  mix_tensor *rate;
  if (optimizer->options.common.schedule)
    rate =
        mix_schedule_call(optimizer->options.common.schedule, mix_update_get(update, optimizer->iterations));
  else
    rate = mix_update_get(update, optimizer->learning_rate);
  if (rate && optimizer->rules->learning_rate_decay && optimizer->options.common.decay > 0 &&
      !optimizer->class->decays_itself) {
    mix_tensor *iterations = mix_cast(mix_update_get(update, optimizer->iterations), mix_tensor_dtype(rate));
    mix_tensor *decay = mix_scalar_like(rate, optimizer->options.common.decay);
    rate = mix_divide(rate, mix_add(mix_scalar_like(rate, 1), mix_multiply(decay, iterations)));
  }
  return update->learning_rate[dtype] = mix_cast(rate, dtype);
}

mix_tensor *mix_update_step(mix_update *update, int offset, mix_dtype dtype) {
  mix_tensor *steps = mix_update_get(update, update->optimizer->iterations);
  int64_t accumulated = update->optimizer->options.common.gradient_accumulation_steps;
  if (accumulated) steps = mix_floor_divide(steps, mix_scalar_like(steps, (double)accumulated));
  return mix_cast(mix_plus(steps, offset), dtype);
}

mix_tensor *mix_update_cast(double value, mix_dtype dtype) { return mix_scalar((double)(float)value, dtype); }

mix_tensor *mix_update_number(const mix_update *update, double value, mix_dtype dtype) {
  return update->optimizer->rules->hyperparameters_in_variables ? mix_update_cast(value, dtype)
                                                                : mix_scalar(value, dtype);
}

mix_tensor *mix_update_one_minus(const mix_update *update, double value, mix_dtype dtype) {
  if (!update->optimizer->rules->hyperparameters_in_variables) return mix_scalar(1 - value, dtype);
  return mix_subtract(mix_scalar(1, dtype), mix_update_cast(value, dtype));
}

mix_tensor *mix_update_running_mean(mix_update *update, mix_variable *slot, double beta, mix_tensor *value) {
  mix_tensor *old = mix_update_get(update, slot);
  mix_tensor *mean = mix_add(
      old, mix_multiply(mix_subtract(value, old), mix_update_one_minus(update, beta, mix_tensor_dtype(old))));
  mix_update_set(update, slot, mean);
  return mean;
}

/* ---- rounding ---- */

/* Is the variable this one, or what this rank has of it? */
static bool is_of(const mix_variable *whole, const mix_variable *variable) {
  return whole == variable || (whole->share && whole->share->part == variable);
}

/* The stream of random bits of a variable: which trainable one, and what of it. */
static int stream_of(mix_update *update, const mix_variable *variable) {
  const mix_optimizer *optimizer = update->optimizer;
  mix_variable **const arrays[] = {optimizer->trainable, optimizer->averages, optimizer->accumulators,
                                   optimizer->slots[0],  optimizer->slots[1], optimizer->slots[2]};
  enum { ARRAYS = sizeof arrays / sizeof *arrays, STREAMS = 8 };
  for (int i = 0; i < optimizer->count; i++) {
    const int index = (update->searched + i) % optimizer->count; /* entries come in order */
    for (int k = 0; k < ARRAYS; k++)
      if (arrays[k] && arrays[k][index] && is_of(arrays[k][index], variable))
        return (update->searched = index) * STREAMS + k;
  }
  return STREAMS * optimizer->count;
}

static mix_tensor *count_of_steps(mix_update *update) {
  mix_pending *entry = find(update, update->optimizer->iterations);
  return entry ? entry->old : NULL;
}

/* The value as the variable keeps it. */
static mix_tensor *rounded(mix_update *update, const mix_variable *variable, mix_tensor *value) {
  mix_optimizer *optimizer = update->optimizer;
  if (mix_tensor_dtype(value) == variable->dtype) return value;
  if (optimizer->rounding == MIX_STATE_STOCHASTIC)
    return mix_stochastic_round(value, mix_variable_true_value(optimizer->state_seed), count_of_steps(update),
                                stream_of(update, variable));
  if (!compensation_of(update, variable)) return mix_cast(value, variable->dtype);
  return mix_stochastic_round(value, mix_scalar(0, MIX_INT64), mix_scalar(0, MIX_INT64), MIX_ROUND_NEAREST);
}

/* The value of an entry as its variable keeps it, or the old one where the update is skipped; NULL if it was
 * only read. `kept` becomes what rounding took from it, for the variable that keeps this, or NULL. */
static mix_tensor *stored_value(mix_update *update, int i, mix_tensor *guard, mix_tensor **kept) {
  join_parts(&update->pending[i]);
  mix_tensor *value = update->pending[i].value;
  if (!value) return NULL;
  mix_variable *variable = update->pending[i].variable, *compensation = NULL;
  /* What was spread is rounded already. */
  if (mix_tensor_dtype(value) != variable->dtype) compensation = compensation_of(update, variable);
  mix_tensor *stored = rounded(update, variable, value); /* may move the entries */
  const mix_pending *entry = &update->pending[i];
  if (compensation)
    *kept = mix_cast(mix_subtract(value, mix_cast(stored, mix_tensor_dtype(value))), compensation->dtype);
  mix_tensor *condition = entry->condition;
  if (entry->unguarded) guard = NULL;
  if (condition && guard) condition = mix_logical_and(condition, guard);
  if (!condition) condition = guard;
  if (condition && *kept) *kept = mix_select(condition, *kept, mix_variable_true_value(compensation));
  return condition ? mix_select(condition, stored, entry->old) : stored;
}

/* The weight that this rank has updated, rounded as on one rank. What rounding took from it stays here. */
static mix_tensor *own_value(mix_update *update, mix_variable *variable) {
  if (mix_update_dtype(update, variable) == variable->dtype) return mix_update_get(update, variable);
  mix_pending *entry = find_itself(update, variable);
  if (!entry) return NULL;
  mix_tensor *kept = NULL, *old = entry->old;
  mix_tensor *stored = stored_value(update, (int)(entry - update->pending), NULL, &kept);
  if (kept) mix_update_set(update, compensation_of(update, variable), kept);
  return stored ? stored : old;
}

void mix_update_spread(mix_update *update, int index) {
  mix_variable *variable = update->optimizer->trainable[index];
  mix_tensor *own = mix_shards_holds(update->optimizer, index) ? own_value(update, variable) : NULL;
  mix_pending *entry = find_itself(update, variable); /* and not its part, which has its own new value */
  if (!entry) return;
  entry->old = mix_variable_true_value(variable);
  entry->value = mix_shards_whole(update->optimizer, index, own);
  entry->rows = entry->idle = entry->condition = NULL;
}

/* Evaluates all values in one plan and assigns them. The scope ends before the writes: it holds reads of the
 * old values, of which a write would have to save a copy. */
static mix_status assign_now(mix_update *update, int count, mix_variable **variables, mix_tensor **values) {
  mix_status status = mix_evaluate(count, values);
  for (int i = 0; i < count; i++) mix_retain(values[i]);
  mix_scope_end(update->scope);
  update->scope = NULL;
  for (int i = 0; i < count; i++) {
    if (status == MIX_OK) status = mix_variable_assign(variables[i], values[i]);
    mix_release(values[i]);
  }
  return status;
}

mix_status mix_update_finish(mix_update *update) {
  const int most = 2 * update->count + 2; /* with compensations, and the count of steps */
  mix_variable **variables = mix_calloc((size_t)most, sizeof *variables);
  mix_tensor **values = mix_calloc((size_t)most, sizeof *values);
  int count = 0;
  for (int i = 0; variables && values && i < update->count; i++) {
    mix_tensor *kept = NULL, *value = stored_value(update, i, update->guard, &kept);
    if (!value) continue;
    variables[count] = update->pending[i].variable;
    values[count++] = value;
    if (!kept) continue;
    variables[count] = compensation_of(update, update->pending[i].variable);
    values[count++] = kept;
  }
  if (!mix_failed()) {
    if (mix_capture_current())
      for (int i = 0; i < count; i++) mix_variable_assign(variables[i], values[i]);
    else
      assign_now(update, count, variables, values);
  }
  mix_free(variables);
  mix_free(values);
  mix_free(update->pending);
  if (update->scope) mix_scope_end(update->scope);
  *update = (mix_update){0};
  return mix_error();
}
