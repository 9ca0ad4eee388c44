#include "backend/host/bands.h"
#include "backend/host/band_places.h"
#include "base/alloc.h"
#include "tensor/shape.h"
#include <string.h>

enum {
  MAX_STEPS = 32,      /* of one group */
  MAX_LATER = 8,       /* steps that one group leaves behind it */
  MIN_STEPS = 4,       /* of a group: the three of a normalisation's forward pass alone lose 6 to 11 % */
  LARGE_OPERANDS = 16, /* of a group: one of them is at least this part of what the caches hold */
  ROWS_OF_THREAD = 4,  /* at least, on average */
  TEST_ROWS = 3,       /* of a band under MIX_BANDS_ALWAYS */
};

static _Atomic mix_host_band_rule rule;
void mix_host_set_band_rule(mix_host_band_rule choice) { atomic_store(&rule, choice); }

static bool may_run_in_bands(const mix_executable *executable, int i) {
  const mix_step *step = &executable->plan->steps[i];
  const mix_host_step *host = &executable->steps[i];
  return host->kernel->bands && step->guard < 0 && !step->writes_variable && !mix_step_may_fail(step) &&
         step->input_count <= 64 && step->output_count <= 64;
}

/* ---- groups ---- */

/* Steps of a plan that may run in bands, and those between them that can run after them, in order. */
typedef struct group {
  mix_host_bands bands;
  mix_band_places places;
  int steps[MAX_STEPS], count;
  int later[MAX_LATER], later_count;
  int pointers; /* operands and results of all members */
} group;

/* The group that is tried, the accesses of the steps that it leaves for later, and those of a step. */
typedef struct scratch {
  group now;
  mix_access_set later, step;
} scratch;

/* Adds a step if it can run in bands with those of the group. */
static bool join(const mix_executable *executable, int i, scratch *x) {
  group *g = &x->now;
  const mix_host_step *host = &executable->steps[i];
  const mix_team first_thread = {.size = executable->threads};
  const int pointers = host->args.input_count + host->args.output_count;
  mix_band_access access = {0};
  int64_t begin, end;
  if (g->count == MAX_STEPS || g->pointers + pointers > MIX_BAND_OPERANDS ||
      !may_run_in_bands(executable, i) ||
      !host->kernel->bands(&host->args, executable->threads, g->bands.rows, &access))
    return false;
  const bool shares =
      host->kernel->band_share && host->kernel->band_share(&host->args, &first_thread, &begin, &end);
  mix_band_accesses(executable, i, g->bands.rows, &access, &x->step);
  if ((shares && g->bands.sharer >= 0) || mix_accesses_conflict(&x->later, &x->step) ||
      !mix_band_places_add(&g->places, g->count, &x->step))
    return false;
  if (shares) g->bands.sharer = i;
  g->steps[g->count++] = i;
  g->pointers += pointers;
  return true;
}

/* Leaves a step for after the bands. */
static bool leave(const mix_executable *executable, int i, scratch *x) {
  const mix_step *step = &executable->plan->steps[i];
  if (!x->now.count || x->now.later_count == MAX_LATER || step->guard >= 0 || step->writes_variable ||
      mix_step_may_fail(step))
    return false;
  mix_step_accesses(executable, i, &x->step);
  for (int k = 0; k < x->step.count; k++) {
    x->later.list[x->later.count] = x->step.list[k];
    x->later.list[x->later.count++].in_order = false;
  }
  x->now.later[x->now.later_count++] = i;
  return true;
}

/* Sets x->now to the steps from `begin` to before `end` that run together in so many rows, and those left.
 * Returns the end of the shortest such group that saves most, and sets *saved to what it saves. */
static int try_group(const mix_executable *executable, int begin, int end, int64_t rows, scratch *x,
                     size_t *saved) {
  group *g = &x->now;
  int best = 0;
  g->bands = (mix_host_bands){.rows = rows, .sharer = -1};
  g->count = g->later_count = g->pointers = g->places.count = g->places.operand_count = x->later.count = 0;
  g->places.apart = *saved = 0;
  for (int i = begin; i < end; i++) {
    if (!join(executable, i, x)) {
      if (!leave(executable, i, x)) break;
      continue;
    }
    const int64_t row = (int64_t)mix_band_row_bytes(&g->places, rows) + 1;
    g->bands.cached_bytes = g->places.apart - mix_band_places_bytes(&g->places);
    g->bands.band = mix_cpu_cache(2) / 2 / row;
    if (!g->bands.band && row <= mix_cpu_cache(3) / 2 / executable->threads) g->bands.band = 1;
    if (g->bands.band && g->bands.cached_bytes > *saved) best = i + 1, *saved = g->bands.cached_bytes;
  }
  return best;
}

/* The shape of the largest operand or result. */
static mix_shape largest_of(const mix_host_step *host) {
  mix_shape largest = {.rank = 0};
  for (int i = 0; i < host->args.input_count + host->args.output_count; i++) {
    const mix_type *type = i < host->args.input_count ? &host->args.input_types[i]
                                                      : &host->args.output_types[i - host->args.input_count];
    if (!i || mix_shape_size(type->shape) > mix_shape_size(largest)) largest = type->shape;
  }
  return largest;
}

/* Is the group worth it: would what its steps access not have stayed in the caches? */
static bool pays(const group *g) {
  if (g->count < 2 || !g->bands.cached_bytes) return false;
  if (atomic_load(&rule) == MIX_BANDS_ALWAYS) return true;
  return g->count >= MIN_STEPS && mix_band_places_bytes(&g->places) > (size_t)mix_cpu_cache(3);
}

/* Do all threads have some? */
static bool enough_rows(const mix_executable *executable, int64_t rows) {
  return atomic_load(&rule) == MIX_BANDS_ALWAYS || rows >= (int64_t)ROWS_OF_THREAD * executable->threads;
}

/* Can a group with such an operand pass over more than the caches hold? */
static bool is_large(mix_shape shape) {
  return atomic_load(&rule) == MIX_BANDS_ALWAYS ||
         mix_shape_size(shape) * (int64_t)sizeof(float) * LARGE_OPERANDS > mix_cpu_cache(3);
}

/* Sets x->now to the best group that begins with a step. Returns its end; 0 if there is none. */
static int find_group(const mix_executable *executable, int begin, scratch *x) {
  const int count = executable->plan->step_count;
  const mix_shape largest = largest_of(&executable->steps[begin]);
  int64_t rows = 1, best_rows = 0;
  size_t best = 0, saved;
  int end = 0;
  if (!may_run_in_bands(executable, begin) || !is_large(largest)) return 0;
  for (int d = 0; d < largest.rank; d++) {
    if (largest.dims[d] == 1) continue;
    rows *= largest.dims[d];
    if (rows < 2 || !enough_rows(executable, rows)) continue;
    const int at = try_group(executable, begin, count, rows, x, &saved);
    if (saved > best) best = saved, best_rows = rows, end = at;
  }
  if (!end) return 0;
  try_group(executable, begin, end, best_rows, x, &saved);
  return pays(&x->now) ? end : 0;
}

/* Do later steps of the group read the place of operand i of a member? */
static bool is_reread(const mix_executable *executable, const group *g, int member, int i) {
  int place = -1;
  for (int k = 0; k < g->places.operand_count; k++) {
    const mix_band_operand *x = &g->places.operands[k];
    if (x->member == member && x->operand == i) place = x->place;
    if (x->member > member && x->place == place &&
        x->operand < executable->plan->steps[g->steps[x->member]].input_count)
      return true;
  }
  return false;
}

/* Gives the places that are a thread's own their memory. False: out of memory, recorded. */
static bool place_own(const mix_executable *executable, mix_host_bands *bands, scratch *x) {
  group *g = &x->now;
  size_t offsets[MIX_BAND_PLACES] = {0};
  mix_band_places_own(&g->places, executable, &x->later, g->steps[g->count - 1] + 1, &x->step);
  bands->cached_bytes = g->places.apart - mix_band_places_bytes(&g->places);
  for (int p = 0; p < g->places.count; p++) {
    const mix_range_access *range = &g->places.list[p].range;
    if (!g->places.list[p].own) continue;
    offsets[p] = bands->own_bytes;
    bands->own_bytes +=
        mix_buffer_aligned((range->end - range->begin) / (size_t)bands->rows * (size_t)bands->band);
  }
  bands->own = mix_calloc((size_t)g->places.operand_count + 1, sizeof *bands->own);
  for (int i = 0; bands->own && i < g->places.operand_count; i++) {
    const mix_band_operand *operand = &g->places.operands[i];
    const mix_band_place *place = &g->places.list[operand->place];
    if (place->own)
      bands->own[bands->own_count++] = (mix_own_operand){
          .member = operand->member,
          .operand = operand->operand,
          .offset = offsets[operand->place],
          .row = (place->range.end - place->range.begin) / (size_t)bands->rows,
      };
  }
  return bands->own != NULL;
}

/* Adds x->now to the order, and the steps that it leaves behind it. False: out of memory, recorded. */
static bool form(mix_executable *executable, scratch *x, int *place) {
  const group *g = &x->now;
  mix_host_bands *own = &executable->bands[executable->band_count++];
  *own = g->bands;
  own->begin = *place;
  own->end = *place + g->count;
  if (atomic_load(&rule) == MIX_BANDS_ALWAYS) own->band = TEST_ROWS;
  for (int i = 0; i < g->count; i++) {
    mix_host_step *host = &executable->steps[g->steps[i]];
    mix_band_access access = {0};
    host->kernel->bands(&host->args, executable->threads, own->rows, &access);
    host->bands = own;
    host->serial = false;
    host->late = access.late_outputs != 0;
    for (int k = 0; k < host->args.output_count; k++)
      host->reread |= (uint64_t)is_reread(executable, g, i, host->args.input_count + k) << k;
    executable->order[(*place)++] = g->steps[i];
  }
  for (int i = 0; i < g->later_count; i++) executable->order[(*place)++] = g->later[i];
  executable->parallel = true;
  return place_own(executable, own, x);
}

static bool form_all(mix_executable *executable, scratch *x) {
  const int count = executable->plan->step_count;
  int place = 0;
  for (int i = 0; i < count;) {
    const int end = find_group(executable, i, x);
    if (!end)
      executable->order[place++] = i++;
    else if (form(executable, x, &place))
      i = end;
    else
      return false;
  }
  return true;
}

/* Each thread has own_bytes of the group that needs most. */
static bool make_own_memory(mix_executable *executable) {
  for (int i = 0; i < executable->band_count; i++)
    if (executable->bands[i].own_bytes > executable->own_bytes)
      executable->own_bytes = executable->bands[i].own_bytes;
  if (!executable->own_bytes) return true;
  executable->own = mix_alloc_buffer(executable->own_bytes * (size_t)executable->threads);
  return executable->own != NULL;
}

/* Bytes of all values but constants: a plan that the caches hold has no bands. */
static bool may_have_bands(const mix_plan *plan) {
  const mix_host_band_rule now = atomic_load(&rule);
  size_t bytes = 0;
  if (now == MIX_BANDS_NEVER || plan->step_count < 2) return false;
  for (int i = 0; i < plan->slot_count; i++)
    if (plan->slots[i].kind != MIX_SLOT_CONSTANT) bytes += plan->slots[i].bytes;
  return now == MIX_BANDS_ALWAYS || bytes > (size_t)mix_cpu_cache(3);
}

bool mix_host_form_bands(mix_executable *executable) {
  const int count = executable->plan->step_count;
  executable->order = mix_calloc((size_t)count + 1, sizeof *executable->order);
  for (int i = 0; executable->order && i < count; i++) executable->order[i] = i;
  if (!executable->order || !may_have_bands(executable->plan)) return executable->order != NULL;
  size_t total = 0;
  for (int i = 0; i < count; i++) total += (size_t)mix_step_access_count(executable, i);
  scratch *x = mix_calloc(1, sizeof *x);
  mix_range_access *memory = mix_calloc(2 * total + 1, sizeof *memory);
  executable->bands = mix_calloc((size_t)count / 2 + 1, sizeof *executable->bands);
  bool good = x && memory && executable->bands;
  if (good) {
    x->later.list = memory, x->step.list = memory + total;
    good = form_all(executable, x) && make_own_memory(executable);
  }
  mix_free(x);
  mix_free(memory);
  return good;
}

void mix_host_free_bands(mix_executable *executable) {
  for (int i = 0; i < executable->band_count; i++) mix_free(executable->bands[i].own);
  if (executable->own) mix_free_buffer(executable->own, executable->own_bytes * (size_t)executable->threads);
  mix_free(executable->bands);
  mix_free(executable->order);
}

/* ---- run ---- */

/* What the kernels of a group get on one thread: its own places have addresses that change with the band. */
typedef struct thread_args {
  mix_kernel_args args[MAX_STEPS];
  const void *inputs[MIX_BAND_OPERANDS];
  void *outputs[MIX_BAND_OPERANDS];
} thread_args;

static void fill_args(thread_args *t, const mix_executable *executable, const mix_host_bands *bands) {
  int inputs = 0, outputs = 0;
  for (int i = bands->begin; i < bands->end; i++) {
    mix_kernel_args *args = &t->args[i - bands->begin];
    *args = executable->steps[executable->order[i]].args;
    memcpy(t->inputs + inputs, args->inputs, (size_t)args->input_count * sizeof *args->inputs);
    memcpy(t->outputs + outputs, args->outputs, (size_t)args->output_count * sizeof *args->outputs);
    args->inputs = t->inputs + inputs;
    args->outputs = t->outputs + outputs;
    inputs += args->input_count;
    outputs += args->output_count;
  }
}

/* A kernel adds the offset of the band's first row, which is at the beginning of the thread's own memory. */
static void place_band(thread_args *t, const mix_host_bands *bands, char *own, int64_t row) {
  for (int i = 0; i < bands->own_count; i++) {
    const mix_own_operand *x = &bands->own[i];
    mix_kernel_args *args = &t->args[x->member];
    void *address = (void *)((uintptr_t)own + x->offset - (size_t)row * x->row);
    if (x->operand < args->input_count)
      args->inputs[x->operand] = address;
    else
      args->outputs[x->operand - args->input_count] = address;
  }
}

void mix_host_run_bands(mix_executable *executable, const mix_host_bands *bands, const mix_team *team) {
  int64_t begin, end;
  const mix_host_step *sharer = bands->sharer < 0 ? NULL : &executable->steps[bands->sharer];
  if (!sharer || !sharer->kernel->band_share(&sharer->args, team, &begin, &end))
    mix_team_share(team, bands->rows, 1, &begin, &end);
  char *own = executable->own ? executable->own + (size_t)team->rank * executable->own_bytes : NULL;
  thread_args t;
  fill_args(&t, executable, bands);
  for (int64_t row = begin; row < end; row += bands->band) {
    place_band(&t, bands, own, row);
    for (int i = bands->begin; i < bands->end; i++) {
      const mix_host_step *host = &executable->steps[executable->order[i]];
      host->kernel->run_band(&t.args[i - bands->begin],
                             &(const mix_band){.rows = bands->rows,
                                               .begin = row,
                                               .end = end - row < bands->band ? end : row + bands->band,
                                               .reread = host->reread});
    }
  }
  for (int i = bands->begin; i < bands->end; i++) {
    const mix_host_step *host = &executable->steps[executable->order[i]];
    if (host->late) host->kernel->end_bands(&t.args[i - bands->begin], team);
  }
}
