/* State in bfloat16: which optimizers and variables can have it, and what the ways of rounding need beside
 * it. The rounding itself is in update.c. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/philox.h"
#include "optim/shard.h"
#include <stdio.h>
#include <string.h>

static mix_state_rounding rounding_of(const char *state) {
  static const struct {
    const char *state;
    mix_state_rounding rounding;
  } known[] = {{"bfloat16", MIX_STATE_NEAREST},
               {"bfloat16-stochastic", MIX_STATE_STOCHASTIC},
               {"bfloat16-kahan", MIX_STATE_KAHAN}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(state, known[i].state)) return known[i].rounding;
  return MIX_STATE_UNROUNDED;
}

bool mix_optimizer_choose_rounding(mix_optimizer *optimizer) {
  mix_optimizer_common *options = &optimizer->options.common;
  const char *call = optimizer->class->lower_case_name;
  optimizer->rounding = rounding_of(options->state);
  if (optimizer->rounding != MIX_STATE_STOCHASTIC && options->state_seed)
    return mix_fail_value("%s: state_seed is given, but the state is \"%s\"; only \"bfloat16-stochastic\" "
                          "draws random bits",
                          call, options->state);
  /* A slot that holds weights would lose the steps themselves. */
  const bool steps_lost = optimizer->rounding == MIX_STATE_NEAREST || optimizer->rounding == MIX_STATE_KAHAN;
  if (steps_lost && optimizer->class->starts_at_weight)
    return mix_fail_value("%s: the state cannot be \"%s\": a slot holds weights, which rounding to nearest "
                          "would keep from moving; use \"bfloat16-stochastic\"",
                          call, options->state);
  return true;
}

bool mix_optimizer_set_state(mix_optimizer *optimizer, const char *state, uint64_t seed) {
  if (optimizer->built)
    return mix_fail_value("%s: the state is made already; choose it before the first step", optimizer->name);
  optimizer->options.common.state = mix_intern(state);
  optimizer->options.common.state_seed = seed;
  return mix_optimizer_choose_rounding(optimizer);
}

bool mix_optimizer_check_state(const mix_optimizer *optimizer, mix_list *variables) {
  if (optimizer->rounding == MIX_STATE_UNROUNDED) return true;
  const char *state = optimizer->options.common.state;
  bool narrow = false;
  for (int i = 0; i < mix_list_count(variables); i++) {
    const mix_variable *variable = mix_list_get(variables, i);
    narrow = narrow || variable->dtype == MIX_BFLOAT16;
    if (variable->dtype != MIX_BFLOAT16 && variable->dtype != MIX_FLOAT32)
      return mix_fail_value(
          "%s: the state cannot be \"%s\" for '%s', which is %s; expected float32 or bfloat16 "
          "weights, as the policies mixed_float16, mixed_bfloat16 and bfloat16 make them",
          optimizer->name, state, variable->name, mix_dtype_name(variable->dtype));
  }
  if (optimizer->rounding == MIX_STATE_KAHAN && !narrow)
    return mix_fail_value("%s: the state cannot be \"%s\": it keeps what rounding takes from weights in "
                          "bfloat16, and there are none; use the policy bfloat16, or \"bfloat16-stochastic\"",
                          optimizer->name, state);
  return true;
}

/* ---- what the rounding needs ---- */

static mix_tensor *zeros(const void *context) {
  const mix_variable *variable = context;
  return mix_fill(variable->shape, 0, MIX_BFLOAT16);
}
static mix_tensor *given_seed(const void *context) {
  return mix_tensor_from(context, MIX_INT64, (mix_shape){.rank = 0});
}

static bool add(mix_optimizer *optimizer, mix_variable *variable) {
  if (!variable || mix_list_append(optimizer->variables, variable) != MIX_OK) return false;
  optimizer->own_variables++;
  return true;
}

static bool add_compensations(mix_optimizer *optimizer) {
  optimizer->compensations = mix_calloc((size_t)optimizer->count + 1, sizeof *optimizer->compensations);
  for (int i = 0; optimizer->compensations && i < optimizer->count; i++) {
    const mix_variable *weight = optimizer->trainable[i];
    char name[512];
    if (weight->dtype != MIX_BFLOAT16 || mix_optimizer_overwrites(optimizer, weight)) continue;
    snprintf(name, sizeof name, "%.200s/%.250s/compensation", optimizer->name, weight->name);
    optimizer->compensations[i] = mix_optimizer_variable(name, zeros, weight);
    if (!add(optimizer, optimizer->compensations[i])) return false;
    if (optimizer->shards && !mix_shards_divide(optimizer, optimizer->compensations[i], i)) return false;
  }
  return optimizer->compensations != NULL;
}

mix_variable *mix_optimizer_make_seed(mix_optimizer *optimizer) {
  if (optimizer->rounding != MIX_STATE_STOCHASTIC || optimizer->state_seed) return optimizer->state_seed;
  const uint64_t given = optimizer->options.common.state_seed;
  const int64_t seed = (int64_t)(given ? given : mix_next_seed());
  return optimizer->state_seed = mix_optimizer_variable("state_seed", given_seed, &seed);
}

bool mix_optimizer_add_rounding(mix_optimizer *optimizer) {
  if (optimizer->rounding == MIX_STATE_KAHAN) return add_compensations(optimizer);
  if (optimizer->rounding != MIX_STATE_STOCHASTIC) return true;
  return add(optimizer, mix_optimizer_make_seed(optimizer));
}
