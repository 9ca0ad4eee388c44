/* Who holds which state of an optimizer, and which weights (Rajbhandari et al., ZeRO: Memory optimizations
 * toward training trillion parameter models, 2020, its first stage). */
#include "optim/shard.h"

#include "backend/communicator.h"
#include "base/alloc.h"
#include "base/error.h"
#include "compile/assign.h"
#include "graph/divided_variable.h"
#include "nn/keep.h"
#include "ops/collective.h"
#include "tensor/shape.h"
#include <mixtape/ops.h>
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

/* Are its rows updated each by itself? Norms of accumulated gradients need all rows of the accumulators. */
static bool has_rows(const mix_optimizer *optimizer, const mix_variable *variable, int ranks) {
  if (mix_optimizer_idle_changes(optimizer) & MIX_IDLE_DENSE || variable->constraint) return false;
  if (optimizer->options.common.gradient_accumulation_steps && mix_shards_clip_by_norm(optimizer))
    return false;
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

/* Outside the capture of the step that makes it. */
static mix_variable *new_clock(void) {
  mix_capture *capture = mix_capture_set(NULL);
  mix_variable *clock = NULL;
  const mix_variable_options options = {.name = "clock", .not_trainable = true};
  MIX_SCOPE { clock = mix_retain(mix_variable_zeros(MIX_INT64, (mix_shape){.rank = 0}, &options)); }
  mix_capture_set(capture);
  return clock;
}

bool mix_shards_plan(mix_optimizer *optimizer) {
  const mix_communicator *c = mix_communicator_in_force();
  mix_shards *s = mix_calloc(1, sizeof *s);
  if (!s) return false;
  s->communicator = c->number, s->rank = c->rank, s->ranks = c->ranks;
  s->divisions = mix_calloc((size_t)optimizer->count + 1, sizeof *s->divisions);
  s->summed = mix_calloc((size_t)optimizer->count + 1, sizeof *s->summed);
  s->clock = new_clock();
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
  enum { OTHERS = 3, ARRAYS = OTHERS + MIX_MAX_SLOTS };
  mix_variable **arrays[ARRAYS] = {optimizer->averages, optimizer->accumulators, optimizer->compensations};
  for (int i = 0; i < MIX_MAX_SLOTS; i++) arrays[OTHERS + i] = optimizer->slots[i];
  for (int a = 0; a < ARRAYS; a++)
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

bool mix_shards_check_here(mix_optimizer *optimizer) {
  optimizer = mix_optimizer_plain(optimizer);
  return !optimizer->shards || for_all_state(optimizer, check_state);
}
