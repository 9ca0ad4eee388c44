#include "backend/host/bands.h"
#include "backend/host/step_accesses.h"
#include "base/alloc.h"
#include "tensor/shape.h"
#include <stdatomic.h>
#include <string.h>

enum {
  MAX_STEPS = 32, /* of one group */
  MAX_LATER = 8,  /* steps that one group leaves behind it */
  MAX_RANGES = 256,
  MAX_CANDIDATES = 24, /* numbers of rows to try */
  ROWS_OF_THREAD = 4,  /* at least */
  TEST_ROWS = 3,       /* of a band under MIX_BANDS_ALWAYS */
};

static _Atomic mix_host_band_rule rule;
void mix_host_set_band_rule(mix_host_band_rule choice) { atomic_store(&rule, choice); }

static bool may_run_in_bands(const mix_executable *executable, int i) {
  const mix_step *step = &executable->plan->steps[i];
  const mix_host_step *host = &executable->steps[i];
  return host->kernel->bands && step->guard < 0 && !step->writes_variable && !mix_host_step_may_fail(step) &&
         step->input_count <= 64 && step->output_count <= 64;
}

/* ---- what a group saves ---- */

/* Ranges that steps of a group access by rows, each once. */
typedef struct ranges {
  const mix_range_access *list[MAX_RANGES];
  bool written[MAX_RANGES];
  int count;
} ranges;

/* Bytes that pass between memory and processor if all that a band accesses stays in the caches: what is read
 * first is read, and what is written is written, once. */
static size_t bytes_of_ranges(const ranges *r) {
  size_t bytes = 0;
  for (int i = 0; i < r->count; i++) {
    const size_t one = r->list[i]->end - r->list[i]->begin;
    bytes += !r->list[i]->write * one + r->written[i] * one;
  }
  return bytes;
}

/* The same range listed twice by one step counts once, as in mix_step_bytes. */
static size_t bytes_of_step(const mix_access_set *step) {
  size_t bytes = 0;
  for (int i = 0; i < step->count; i++) {
    bool repeated = !step->list[i].in_order;
    for (int j = 0; j < i; j++)
      repeated = repeated || (step->list[j].write == step->list[i].write && step->list[j].in_order &&
                              mix_same_range(&step->list[j], &step->list[i]));
    if (!repeated) bytes += step->list[i].end - step->list[i].begin;
  }
  return bytes;
}

static void add_ranges(ranges *r, const mix_access_set *step) {
  for (int i = 0; i < step->count; i++) {
    const mix_range_access *access = &step->list[i];
    int at = 0;
    if (!access->in_order) continue;
    while (at < r->count && !mix_same_range(r->list[at], access)) at++;
    if (at == r->count) r->list[r->count] = access, r->written[r->count++] = false;
    r->written[at] = r->written[at] || access->write;
  }
}

static int64_t bytes_of_row(const ranges *r, int64_t rows) {
  size_t bytes = 0;
  for (int i = 0; i < r->count; i++) bytes += r->list[i]->end - r->list[i]->begin;
  return (int64_t)bytes / rows + 1;
}

/* ---- groups ---- */

/* Steps of a plan that may run in bands, and those between them that can run after them, in order. */
typedef struct group {
  mix_host_bands bands;
  int steps[MAX_STEPS], count;
  int later[MAX_LATER], later_count;
  int next; /* the first step behind all of these */
} group;

/* Memory for the accesses of the steps of a group, and of those that run later, and for those of one step. */
typedef struct scratch {
  mix_access_set set, later, step;
  ranges ranges;
} scratch;

static void append(mix_access_set *to, const mix_access_set *from) {
  memcpy(to->list + to->count, from->list, (size_t)from->count * sizeof *from->list);
  to->count += from->count;
}

/* Adds a step if it can run in bands with those of the group. */
static bool join(const mix_executable *executable, int i, group *g, scratch *x) {
  const mix_host_step *host = &executable->steps[i];
  const mix_team first_thread = {.size = executable->threads};
  mix_band_access access = {0};
  int64_t begin, end;
  if (g->count == MAX_STEPS || !may_run_in_bands(executable, i) ||
      !host->kernel->bands(&host->args, executable->threads, g->bands.rows, &access))
    return false;
  mix_band_accesses(executable, i, g->bands.rows, &access, &x->step);
  if (mix_accesses_conflict(&x->set, &x->step) || mix_accesses_conflict(&x->later, &x->step)) return false;
  const bool shares = host->kernel->band_share &&
                      host->kernel->band_share(&host->args, &first_thread, g->bands.rows, &begin, &end);
  if ((shares && g->bands.sharer >= 0) || x->ranges.count + x->step.count > MAX_RANGES) return false;
  if (shares) g->bands.sharer = i;
  const mix_access_set added = {x->set.list + x->set.count, x->step.count};
  append(&x->set, &x->step);
  add_ranges(&x->ranges, &added);
  g->steps[g->count++] = i;
  g->bands.cached_bytes += bytes_of_step(&added);
  return true;
}

/* Leaves a step for after the bands. */
static bool leave(const mix_executable *executable, int i, group *g, scratch *x) {
  const mix_step *step = &executable->plan->steps[i];
  if (g->later_count == MAX_LATER || step->guard >= 0 || step->writes_variable ||
      mix_host_step_may_fail(step))
    return false;
  mix_step_accesses(executable, i, &x->step);
  for (int k = 0; k < x->step.count; k++) x->step.list[k].in_order = false;
  append(&x->later, &x->step);
  g->later[g->later_count++] = i;
  return true;
}

/* The group that begins with a step, of so many rows, that saves most; with the fewest steps. */
static group group_of(const mix_executable *executable, int begin, int64_t rows, scratch *x) {
  group best = {.next = 0}, now = {.bands = {.rows = rows, .sharer = -1}};
  x->set.count = x->later.count = x->ranges.count = 0;
  size_t apart = 0; /* bytes that the steps access, each by itself */
  for (int i = begin; i < executable->plan->step_count; i++) {
    now.bands.cached_bytes = apart;
    if (!join(executable, i, &now, x)) {
      if (!now.count || !leave(executable, i, &now, x)) break;
      continue;
    }
    apart = now.bands.cached_bytes;
    const int64_t row = bytes_of_row(&x->ranges, rows);
    now.next = i + 1;
    now.bands.bytes = bytes_of_ranges(&x->ranges);
    now.bands.cached_bytes = apart - now.bands.bytes;
    now.bands.band = mix_cpu_cache(2) / 2 / row;
    if (!now.bands.band && row <= mix_cpu_cache(3) / 2 / executable->threads) now.bands.band = 1;
    if (now.bands.band && now.bands.cached_bytes > best.bands.cached_bytes) best = now;
  }
  return best;
}

/* Products of leading dimensions of the operands and results of a step. */
static int candidates_of(const mix_host_step *host, int64_t *list) {
  int count = 0;
  for (int i = 0; i < host->args.input_count + host->args.output_count; i++) {
    const mix_shape *shape =
        &(i < host->args.input_count ? &host->args.input_types[i]
                                     : &host->args.output_types[i - host->args.input_count])
             ->shape;
    int64_t rows = 1;
    for (int d = 0; d < shape->rank; d++) {
      rows *= shape->dims[d];
      bool known = rows < 2 || count == MAX_CANDIDATES;
      for (int j = 0; j < count; j++) known = known || list[j] == rows;
      if (!known) list[count++] = rows;
    }
  }
  return count;
}

/* Is the group worth it: would what its steps access not have stayed in the caches? */
static bool pays(const mix_executable *executable, const group *g) {
  const mix_host_band_rule now = atomic_load(&rule);
  if (now == MIX_BANDS_NEVER || g->count < 2 || !g->bands.cached_bytes) return false;
  if (now == MIX_BANDS_ALWAYS) return true;
  return g->bands.rows >= (int64_t)ROWS_OF_THREAD * executable->threads &&
         g->bands.bytes > (size_t)mix_cpu_cache(3);
}

static group best_group(const mix_executable *executable, int begin, scratch *x) {
  int64_t candidates[MAX_CANDIDATES];
  group best = {.next = 0};
  const int count =
      may_run_in_bands(executable, begin) ? candidates_of(&executable->steps[begin], candidates) : 0;
  for (int i = 0; i < count; i++) {
    const group g = group_of(executable, begin, candidates[i], x);
    if (pays(executable, &g) && g.bands.cached_bytes > best.bands.cached_bytes) best = g;
  }
  return best;
}

/* Do later steps of the group read output k of a step? */
static bool is_kept(const mix_executable *executable, const group *g, int member, int k) {
  const mix_step *steps = executable->plan->steps;
  const int output = steps[g->steps[member]].outputs[k];
  for (int i = member + 1; i < g->count; i++)
    for (int j = 0; j < steps[g->steps[i]].input_count; j++)
      if (steps[g->steps[i]].inputs[j] == output) return true;
  return false;
}

/* Adds the group to the order, and the steps that it leaves behind it. */
static void form(mix_executable *executable, const group *g, int *place) {
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
      host->kept |= (uint64_t)is_kept(executable, g, i, k) << k;
    executable->order[(*place)++] = g->steps[i];
  }
  for (int i = 0; i < g->later_count && g->later[i] < g->next; i++)
    executable->order[(*place)++] = g->later[i];
  executable->parallel = true;
}

static void form_all(mix_executable *executable, scratch *x) {
  const int count = executable->plan->step_count;
  int place = 0;
  for (int i = 0; i < count;) {
    const group g = best_group(executable, i, x);
    if (g.next)
      form(executable, &g, &place);
    else
      executable->order[place++] = i;
    i = g.next ? g.next : i + 1;
  }
}

bool mix_host_form_bands(mix_executable *executable) {
  const int count = executable->plan->step_count;
  size_t total = 0;
  for (int i = 0; i < count; i++) total += (size_t)mix_step_access_count(executable, i);
  scratch *x = mix_calloc(1, sizeof *x);
  mix_range_access *memory = mix_calloc(3 * total + 1, sizeof *memory);
  executable->bands = mix_calloc((size_t)count / 2 + 1, sizeof *executable->bands);
  executable->order = mix_calloc((size_t)count + 1, sizeof *executable->order);
  const bool good = x && memory && executable->bands && executable->order;
  if (good) {
    x->set.list = memory, x->later.list = memory + total, x->step.list = memory + 2 * total;
    form_all(executable, x);
  }
  mix_free(x);
  mix_free(memory);
  return good;
}

void mix_host_run_bands(mix_executable *executable, const mix_host_bands *bands, const mix_team *team) {
  int64_t begin, end;
  const mix_host_step *sharer = bands->sharer < 0 ? NULL : &executable->steps[bands->sharer];
  if (!sharer || !sharer->kernel->band_share(&sharer->args, team, bands->rows, &begin, &end))
    mix_team_share(team, bands->rows, 1, &begin, &end);
  for (int64_t row = begin; row < end; row += bands->band)
    for (int i = bands->begin; i < bands->end; i++) {
      const mix_host_step *host = &executable->steps[executable->order[i]];
      host->kernel->run_band(&host->args,
                             &(const mix_band){.rows = bands->rows,
                                               .begin = row,
                                               .end = end - row < bands->band ? end : row + bands->band,
                                               .kept = host->kept});
    }
  for (int i = bands->begin; i < bands->end; i++) {
    const mix_host_step *host = &executable->steps[executable->order[i]];
    if (host->late) host->kernel->end_bands(&host->args, team);
  }
}
