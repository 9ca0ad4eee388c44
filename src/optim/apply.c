/* One update of a plain optimizer, in Keras's order: drop missing gradients, loss scale factor,
 * accumulation, clipping, weight decay, the rule, moving averages, constraints, overwritten variables,
 * iterations + 1. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/keep.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "optim/shard.h"
#include "tensor/shape.h"
#include <stdatomic.h>
#include <stdio.h>

typedef struct step {
  mix_update update;
  mix_optimizer *optimizer;
  int count;                 /* of gradients for the rule, at the front of the arrays */
  int capacity, overwriting; /* the length of the arrays; the gradients that overwrite, at their end */
  mix_tensor **gradients;
  int *indices;          /* of the trainable variables */
  mix_tensor *is_update; /* accumulation: whether this call updates; NULL without accumulation */
} step;

mix_tensor *mix_optimizer_gradient(mix_tensor *gradient) {
  if (!gradient || gradient->node->keep) return gradient;
  return mix_kept(mix_with_values(gradient, mix_kept(mix_gradient_identity(mix_rows_values(gradient)))));
}

/* Once, for steps come in thousands. Keras trains nothing, too, and says nothing. */
static void warn_of_no_variables(const char *call) {
  static atomic_bool warned;
  if (!atomic_exchange(&warned, true))
    mix_log_message(
        MIX_LOG_WARNING,
        "%s: no variables are given, so nothing trains; a Sequential or subclassed model has none "
        "before mix_model_build, or its first call",
        call);
}

bool mix_optimizer_check_lists(const char *call, mix_optimizer *optimizer, mix_list *gradients,
                               mix_list *variables) {
  if (mix_failed()) return false;
  if (!mix_is(optimizer, &mix_optimizer_object_class) || !mix_is(gradients, &mix_list_class) ||
      !mix_is(variables, &mix_list_class))
    return mix_fail_type("%s: expected an optimizer, a list of gradients and a list of variables", call);
  int count = mix_list_count(gradients), expected = mix_list_count(variables);
  if (count != expected) return mix_fail_value("%s: %d gradients for %d variables", call, count, expected);
  bool any = count == 0;
  if (!count) warn_of_no_variables(call);
  for (int i = 0; i < count; i++) {
    void *gradient = mix_list_get(gradients, i);
    any = any || gradient;
    if (gradient && !mix_is(gradient, &mix_tensor_class))
      return mix_fail_type("%s: item %d of the gradients is not a tensor", call, i);
    if (!mix_is(mix_list_get(variables, i), &mix_variable_class))
      return mix_fail_type("%s: item %d of the variables is not a variable", call, i);
  }
  if (!any)
    return mix_fail_value("%s: no gradients provided for any variable: every one of the %d is NULL", call,
                          count);
  return true;
}

/* Checks that the gradient has its variable's shape, and its dtype except in keras3. */
static mix_tensor *checked(const mix_optimizer *optimizer, const mix_variable *variable,
                           mix_tensor *gradient) {
  gradient = mix_optimizer_gradient(gradient);
  if (!gradient) return NULL;
  mix_dtype dtype = mix_tensor_dtype(gradient);
  mix_shape shape = mix_tensor_shape(gradient);
  if (!optimizer->shards && !mix_shape_equal(shape, variable->shape))
    return mix_fail_value("%s: the gradient of '%s' has shape %s; expected %s", optimizer->name,
                          variable->name, MIX_SHAPE_TEXT(shape), MIX_SHAPE_TEXT(variable->shape));
  if (dtype != variable->dtype && !optimizer->rules->gradients_cast)
    return mix_fail_type("%s: the gradient of '%s' is %s and the variable %s; cast it", optimizer->name,
                         variable->name, mix_dtype_name(dtype), mix_dtype_name(variable->dtype));
  if (variable->constraint && optimizer->rules->sparse_constraint_refused && mix_tensor_is_rows(gradient))
    return mix_fail_runtime("%s: '%s' has a constraint and a gradient of rows, which %s cannot combine; "
                            "make the gradient dense with mix_identity",
                            optimizer->name, variable->name, optimizer->rules->name);
  return gradient;
}

static bool contains(mix_list *list, const mix_variable *variable) {
  for (int i = 0; list && i < mix_list_count(list); i++)
    if (mix_list_get(list, i) == variable) return true;
  return false;
}

/* (iterations + 1) % period == 0 */
static mix_tensor *every(mix_tensor *iterations, int64_t period) {
  mix_tensor *next = mix_plus(iterations, 1);
  return mix_equal(mix_floor_mod(next, mix_scalar_like(iterations, (double)period)),
                   mix_scalar_like(iterations, 0));
}

/* keras3: the gradient overwrites the variable. With accumulation that happens on update calls, with the
 * elementwise maximum of the gradients since the last update; the accumulator holds the maximum so far. */
static void take_overwriting(step *s, int index, mix_tensor *gradient) {
  if (s->is_update)
    gradient = mix_maximum(gradient, mix_update_get(&s->update, s->optimizer->accumulators[index]));
  const int slot = s->capacity - ++s->overwriting;
  s->gradients[slot] = gradient;
  s->indices[slot] = index;
}

/* Overwrites variables with their gradients. Runs after update_weights, which clears all accumulators on
 * update calls. */
static void overwrite(step *s) {
  for (int i = s->capacity - s->overwriting; i < s->capacity; i++) {
    mix_variable *variable = s->optimizer->trainable[s->indices[i]];
    mix_tensor *value = s->gradients[i];
    if (s->is_update) {
      mix_update_set(&s->update, s->optimizer->accumulators[s->indices[i]],
                     mix_select(s->is_update, mix_zeros_like(value), value));
      value = mix_select(s->is_update, value, mix_update_get(&s->update, variable));
    }
    mix_update_set(&s->update, variable, value);
  }
}

/* Partitions the gradients: missing ones are dropped with a warning, overwriting ones go to the end, the
 * others to the front. */
static bool gather(step *s, mix_list *gradients, mix_list *variables) {
  mix_optimizer *optimizer = s->optimizer;
  char missing[512] = "";
  size_t length = 0;
  for (int i = 0; i < mix_list_count(gradients); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    int index = mix_optimizer_index(optimizer, variable, i);
    if (index < 0)
      return mix_fail_value("%s: variable '%s' is not one of those it was built for; "
                            "make a new optimizer for a new set of variables",
                            optimizer->name, variable->name);
    mix_tensor *gradient = mix_list_get(gradients, i);
    if (!gradient && optimizer->shards && optimizer->shards->summed[index]) {
      s->indices[s->count++] = index; /* another rank has the gradient */
      continue;
    }
    if (!gradient) {
      if (length < sizeof missing)
        length += (size_t)snprintf(missing + length, sizeof missing - length, "%s'%s'", length ? ", " : "",
                                   variable->name);
      continue;
    }
    if (!(gradient = checked(optimizer, variable, gradient))) return false;
    const bool overwrites = mix_optimizer_overwrites(optimizer, variable);
    /* keras3 unscales and clips in the gradient's dtype and casts in the rule. */
    if (overwrites || s->is_update) gradient = mix_cast(gradient, mix_update_dtype(&s->update, variable));
    if (overwrites) {
      take_overwriting(s, index, gradient);
      continue;
    }
    s->gradients[s->count] = gradient;
    s->indices[s->count++] = index;
  }
  if (length)
    mix_log_message(MIX_LOG_WARNING, "%s: gradients do not exist for variables [%s] when minimizing the loss",
                    optimizer->name, missing);
  return !mix_failed();
}

/* 0: the variable does not decay. */
static double decay_of(const mix_optimizer *optimizer, const mix_variable *variable) {
  const mix_optimizer_class *class = optimizer->class;
  const double common = optimizer->options.common.weight_decay;
  const double decay = class->weight_decay_of ? class->weight_decay_of(optimizer, variable) : common;
  if (decay == 0 || contains(optimizer->undecayed, variable)) return 0;
  for (int i = 0; i < optimizer->undecayed_name_count; i++)
    if (!regexec(&optimizer->undecayed_names[i], variable->name, 0, NULL, 0)) return 0;
  return decay;
}

/* w -= w * (weight_decay * learning_rate), in the order of TensorFlow's graph optimizer. */
static void decay_weights(step *s) {
  const mix_optimizer *optimizer = s->optimizer;
  for (int i = 0; i < s->count; i++) {
    mix_variable *variable = optimizer->trainable[s->indices[i]];
    const double decay = decay_of(optimizer, variable);
    if (decay == 0 || !s->gradients[i]) continue;
    for (mix_update_begin_parts(&s->update, variable, MIX_IDLE_WEIGHT); mix_update_next_part(&s->update);) {
      mix_tensor *weight = mix_update_get(&s->update, variable);
      mix_tensor *share = mix_multiply(mix_update_cast(decay, mix_tensor_dtype(weight)),
                                       mix_update_learning_rate(&s->update, mix_tensor_dtype(weight)));
      mix_update_set(&s->update, variable, mix_subtract(weight, mix_multiply(weight, share)));
    }
  }
}

/* Combines the rows of sparse gradients. This comes after clipping, which Keras does before. */
static void combine_gradients(step *s) {
  const bool dense = mix_optimizer_idle_changes(s->optimizer) & MIX_IDLE_DENSE;
  for (int i = 0; i < s->count; i++) {
    mix_update_gradient *gradient = &s->update.gradients[i];
    gradient->variable = s->optimizer->trainable[s->indices[i]];
    if (!s->gradients[i] || !mix_tensor_is_rows(s->gradients[i])) continue;
    s->gradients[i] = mix_cast(s->gradients[i], mix_update_dtype(&s->update, gradient->variable));
    gradient->values = mix_rows_values(s->gradients[i]);
    gradient->value_indices = mix_rows_indices(s->gradients[i]);
    if (!dense)
      gradient->sums = mix_combine_rows(gradient->values, gradient->value_indices,
                                        gradient->variable->shape.dims[0], &gradient->indices);
  }
}

/* The gradient of the current part. */
static mix_tensor *part_gradient(const mix_update *update, mix_tensor *whole) {
  return update->part == MIX_PART_WHOLE  ? whole
         : update->part == MIX_PART_ROWS ? update->of->sums
                                         : mix_scalar(0, update->of->variable->dtype);
}

static void update_variable(step *s, int i) {
  const mix_optimizer *optimizer = s->optimizer;
  const int index = s->indices[i];
  const mix_variable *variable = optimizer->trainable[index];
  s->update.gradient = i;
  if (optimizer->class->begin_variable) optimizer->class->begin_variable(&s->update);
  if (!s->gradients[i]) return; /* another rank updates it */
  mix_tensor *own = mix_shards_rows(optimizer, index, s->gradients[i]);
  mix_tensor *gradient = mix_cast(own, mix_update_dtype(&s->update, variable));
  /* The casts of what is read come before the rule, whose nodes then are a chain that the CPU knows. */
  for (int k = 0; k < MIX_MAX_SLOTS && optimizer->rounding != MIX_STATE_UNROUNDED; k++)
    if (optimizer->slots[k]) mix_update_get(&s->update, optimizer->slots[k][index]);
  mix_update_begin_parts(&s->update, variable, mix_optimizer_idle_changes(optimizer));
  while (mix_update_next_part(&s->update))
    optimizer->class->update(&s->update, index, part_gradient(&s->update, gradient));
}

/* Clipping, weight decay and the rule. With accumulation, every n-th call updates with the mean of n
 * gradients; the other calls only add to the accumulators. */
static bool update_weights(step *s) {
  mix_optimizer *optimizer = s->optimizer;
  mix_tensor **sums = mix_calloc((size_t)s->count + 1, sizeof *sums);
  if (!sums) return false;
  for (int i = 0; s->is_update && i < s->count; i++) {
    mix_tensor *gradient = s->gradients[i];
    if (!gradient) continue;
    sums[i] = mix_add(gradient, mix_update_get(&s->update, optimizer->accumulators[s->indices[i]]));
    s->gradients[i] = mix_divide(
        sums[i], mix_scalar_like(gradient, (double)optimizer->options.common.gradient_accumulation_steps));
  }
  bool done = mix_clip_gradients(optimizer, s->count, s->gradients, s->indices);
  s->update.gradient_count = s->count;
  if (done) combine_gradients(s);
  if (done) decay_weights(s);
  if (done && optimizer->class->begin) optimizer->class->begin(&s->update);
  for (int i = 0; done && i < s->count; i++) update_variable(s, i);
  if (done && s->is_update) {
    /* An update also clears the accumulators of variables without a gradient in this call. */
    for (int i = 0; i < optimizer->count; i++) {
      mix_variable *accumulator = optimizer->accumulators[i];
      if (!mix_optimizer_overwrites(optimizer, optimizer->trainable[i]) && !mix_shards_holds(optimizer, i))
        continue;
      mix_update_set(&s->update, accumulator, mix_zeros_like(mix_update_get(&s->update, accumulator)));
    }
    mix_update_condition(&s->update, s->is_update);
    for (int i = 0; i < s->count; i++)
      if (sums[i])
        mix_update_set(&s->update, optimizer->accumulators[s->indices[i]],
                       mix_select(s->is_update, mix_zeros_like(sums[i]), sums[i]));
  }
  mix_free(sums);
  return done && !mix_failed();
}

/* average = m * average + (1 - m) * w. Every n-th step overwrites the weights with their averages. tf_keras
 * averages the variables of this call; keras3 averages all, with m = 0 on the first step. */
static void average_weights(step *s) {
  mix_optimizer *optimizer = s->optimizer;
  const mix_optimizer_common *options = &optimizer->options.common;
  if (!optimizer->averages) return;
  bool from_weight = optimizer->rules->ema_starts_at_weight;
  mix_tensor *iterations = mix_update_get(&s->update, optimizer->iterations);
  if (options->gradient_accumulation_steps)
    iterations = mix_floor_divide(iterations,
                                  mix_scalar_like(iterations, (double)options->gradient_accumulation_steps));
  mix_tensor *overwrites =
      options->ema_overwrite_frequency ? every(iterations, options->ema_overwrite_frequency) : NULL;
  mix_tensor *later = from_weight ? NULL : mix_not_equal(iterations, mix_scalar_like(iterations, 0));
  int count = from_weight ? s->count : optimizer->count;
  for (int i = 0; i < count; i++) {
    int index = from_weight ? s->indices[i] : i;
    mix_variable *variable = optimizer->trainable[index], *average = optimizer->averages[index];
    if (mix_optimizer_overwrites(optimizer, variable) || !mix_shards_holds(optimizer, index)) continue;
    const mix_dtype dtype = mix_update_dtype(&s->update, variable);
    mix_tensor *momentum = mix_scalar(options->ema_momentum, dtype);
    mix_tensor *rest = mix_scalar(1 - options->ema_momentum, dtype);
    if (later) {
      momentum = mix_multiply(mix_cast(later, dtype), momentum);
      rest = mix_subtract(mix_scalar(1, dtype), momentum);
    }
    for (mix_update_begin_parts(&s->update, variable, MIX_IDLE_ALL); mix_update_next_part(&s->update);) {
      mix_tensor *weight = mix_update_get(&s->update, variable);
      mix_tensor *mean =
          mix_add(mix_multiply(momentum, mix_update_get(&s->update, average)), mix_multiply(rest, weight));
      mix_update_set(&s->update, average, mean);
      if (overwrites) mix_update_set(&s->update, variable, mix_select(overwrites, mean, weight));
    }
  }
}

/* What each rank has updated becomes known to all, in one order of the variables. */
static void spread_weights(step *s) {
  mix_optimizer *optimizer = s->optimizer;
  for (int i = 0; i < optimizer->count; i++)
    if (mix_shards_sets(optimizer, i)) mix_update_spread(&s->update, i);
  mix_variable *clock = optimizer->shards->clock;
  mix_update_set(&s->update, clock, mix_plus(mix_update_get(&s->update, clock), 1));
  mix_update_unguard(&s->update, clock);
}

static bool build_step(step *s, mix_list *gradients, mix_list *variables, bool count_skipped) {
  mix_optimizer *optimizer = s->optimizer;
  const mix_optimizer_common *options = &optimizer->options.common;
  mix_tensor *iterations = mix_update_get(&s->update, optimizer->iterations);
  if (options->gradient_accumulation_steps)
    s->is_update = every(iterations, options->gradient_accumulation_steps);
  if (!gather(s, gradients, variables)) return false;
  if (s->count > 0) {
    for (int i = 0; options->loss_scale_factor != 0 && i < s->count; i++)
      if (s->gradients[i])
        s->gradients[i] = mix_with_values(
            s->gradients[i], mix_divide(mix_rows_values(s->gradients[i]),
                                        mix_scalar_like(s->gradients[i], options->loss_scale_factor)));
    if (!update_weights(s)) return false;
    average_weights(s);
    for (int i = 0; i < s->count; i++) {
      mix_variable *variable = optimizer->trainable[s->indices[i]];
      if (variable->constraint && s->gradients[i])
        mix_update_set(&s->update, variable,
                       mix_constraint_call(variable->constraint, mix_update_get(&s->update, variable)));
    }
  }
  overwrite(s);
  if (optimizer->shards) spread_weights(s);
  mix_update_set(&s->update, optimizer->iterations, mix_plus(iterations, 1));
  /* With accumulation a skipped call adds no gradient and is not counted. */
  if (count_skipped && !options->gradient_accumulation_steps)
    mix_update_unguard(&s->update, optimizer->iterations);
  return !mix_failed();
}

mix_status mix_optimizer_step(mix_optimizer *optimizer, mix_list *gradients, mix_list *variables,
                              mix_tensor *guard, bool count_skipped) {
  int count = mix_list_count(gradients);
  if (count == 0 || mix_optimizer_build_in_step(optimizer, variables) != MIX_OK) return mix_error();
  step s = {.optimizer = optimizer,
            .capacity = count,
            .gradients = mix_calloc((size_t)count, sizeof *s.gradients),
            .indices = mix_calloc((size_t)count, sizeof *s.indices)};
  mix_update_gradient *sparse = mix_calloc((size_t)count, sizeof *sparse);
  mix_dtype cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  const char *scope = mix_graph_scope_set(optimizer->name);
  if (s.gradients && s.indices && sparse && mix_update_begin(&s.update, optimizer, guard)) {
    s.update.gradients = sparse;
    build_step(&s, gradients, variables, count_skipped);
    mix_update_finish(&s.update);
  }
  mix_graph_scope_set(scope);
  mix_cast_dtype_set(cast);
  mix_free(sparse);
  mix_free(s.gradients);
  mix_free(s.indices);
  return mix_error();
}

mix_status mix_optimizer_finalize_variable_values(mix_optimizer *optimizer, mix_list *variables) {
  if (mix_failed()) return mix_error();
  if (!mix_is(optimizer, &mix_optimizer_object_class))
    return mix_fail_status(MIX_TYPE_ERROR, "optimizer_finalize_variable_values: no optimizer");
  if (!mix_variables_given(variables, "optimizer_finalize_variable_values")) return mix_error();
  optimizer = mix_optimizer_plain(optimizer);
  if (!optimizer->averages) return MIX_OK;
  mix_scope *scope = mix_scope_begin();
  for (int i = 0; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    int index = mix_optimizer_index(optimizer, variable, i);
    if (index < 0 || mix_optimizer_overwrites(optimizer, variable)) continue;
    mix_variable *kept = optimizer->compensations ? optimizer->compensations[index] : NULL;
    MIX_SCOPE {
      mix_variable_assign(variable, mix_shards_value(optimizer->averages[index]));
      if (kept) mix_variable_assign(kept, mix_fill(kept->shape, 0, kept->dtype));
    }
  }
  if (scope) mix_scope_end(scope);
  return mix_error();
}
