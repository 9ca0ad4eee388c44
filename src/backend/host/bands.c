#include "backend/host/bands.h"
#include "backend/host/step_accesses.h"
#include "base/alloc.h"
#include "tensor/shape.h"
#include <stdatomic.h>
#include <string.h>

enum {
  MAX_STEPS = 32,      /* of one group */
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
  const mix_range_access *list[MAX_STEPS * 16];
  bool written[MAX_STEPS * 16];
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

/* False: too many. */
static bool add_ranges(ranges *r, const mix_access_set *step) {
  for (int i = 0; i < step->count; i++) {
    const mix_range_access *access = &step->list[i];
    int at = 0;
    if (!access->in_order) continue;
    while (at < r->count && !mix_same_range(r->list[at], access)) at++;
    if (at == (int)(sizeof r->list / sizeof *r->list)) return false;
    if (at == r->count) r->list[r->count] = access, r->written[r->count++] = false;
    r->written[at] = r->written[at] || access->write;
  }
  return true;
}

static int64_t bytes_of_row(const ranges *r, int64_t rows) {
  size_t bytes = 0;
  for (int i = 0; i < r->count; i++) bytes += r->list[i]->end - r->list[i]->begin;
  return (int64_t)bytes / rows + 1;
}

/* ---- groups ---- */

/* Memory for the accesses of a group; `set` holds those of all its steps, in order. */
typedef struct scratch {
  mix_access_set set;
  ranges ranges;
} scratch;

/* The group that begins with a step, of so many rows, that saves most; with the fewest steps. */
static mix_host_bands group_of(const mix_executable *executable, int begin, int64_t rows, scratch *x) {
  const int count = executable->plan->step_count;
  mix_host_bands best = {.sharer = -1}, now = {.begin = begin, .rows = rows, .sharer = -1};
  size_t apart = 0;
  x->set.count = x->ranges.count = 0;
  for (int i = begin; i < count && i < begin + MAX_STEPS && may_run_in_bands(executable, i); i++) {
    const mix_host_step *host = &executable->steps[i];
    mix_band_access access = {0};
    int64_t first, end;
    if (!host->kernel->bands(&host->args, executable->threads, rows, &access)) break;
    mix_access_set step = {x->set.list + x->set.count, 0};
    mix_band_accesses(executable, i, rows, &access, &step);
    if (mix_accesses_conflict(&x->set, &step)) break;
    if (host->kernel->band_share &&
        host->kernel->band_share(&host->args, &(const mix_team){.size = executable->threads}, rows, &first,
                                 &end)) {
      if (now.sharer >= 0) break;
      now.sharer = i;
    }
    if (!add_ranges(&x->ranges, &step)) break;
    x->set.count += step.count;
    apart += bytes_of_step(&step);
    now.end = i + 1;
    now.cached_bytes = apart - bytes_of_ranges(&x->ranges);
    now.bytes = apart - now.cached_bytes;
    now.band = mix_cpu_cache(2) / 2 / bytes_of_row(&x->ranges, rows);
    if (!now.band && bytes_of_row(&x->ranges, rows) <= mix_cpu_cache(3) / 2 / executable->threads)
      now.band = 1;
    if (now.band && now.cached_bytes > best.cached_bytes) best = now;
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
static bool pays(const mix_executable *executable, const mix_host_bands *group) {
  const mix_host_band_rule now = atomic_load(&rule);
  if (now == MIX_BANDS_NEVER || group->end - group->begin < 2 || !group->cached_bytes) return false;
  if (now == MIX_BANDS_ALWAYS) return true;
  return group->rows >= (int64_t)ROWS_OF_THREAD * executable->threads &&
         group->bytes > (size_t)mix_cpu_cache(3);
}

static mix_host_bands best_group(const mix_executable *executable, int begin, scratch *x) {
  int64_t candidates[MAX_CANDIDATES];
  mix_host_bands best = {0};
  const int count =
      may_run_in_bands(executable, begin) ? candidates_of(&executable->steps[begin], candidates) : 0;
  for (int i = 0; i < count; i++) {
    const mix_host_bands group = group_of(executable, begin, candidates[i], x);
    if (pays(executable, &group) && group.cached_bytes > best.cached_bytes) best = group;
  }
  return best;
}

/* Which outputs of a step do later steps of the group read? */
static uint64_t kept_outputs(const mix_executable *executable, const mix_host_bands *group, int number) {
  const mix_plan *plan = executable->plan;
  uint64_t kept = 0;
  for (int k = 0; k < plan->steps[number].output_count; k++)
    for (int i = number + 1; i < group->end; i++)
      for (int j = 0; j < plan->steps[i].input_count; j++)
        if (plan->steps[i].inputs[j] == plan->steps[number].outputs[k]) kept |= (uint64_t)1 << k;
  return kept;
}

static void form(mix_executable *executable, const mix_host_bands *group) {
  mix_host_bands *own = &executable->bands[executable->band_count++];
  *own = *group;
  if (atomic_load(&rule) == MIX_BANDS_ALWAYS) own->band = TEST_ROWS;
  for (int i = group->begin; i < group->end; i++) {
    mix_host_step *host = &executable->steps[i];
    mix_band_access access = {0};
    host->kernel->bands(&host->args, executable->threads, group->rows, &access);
    host->bands = own;
    host->serial = false;
    host->kept = kept_outputs(executable, group, i);
    host->late = access.late_outputs != 0;
  }
  executable->parallel = true;
}

bool mix_host_form_bands(mix_executable *executable) {
  const int count = executable->plan->step_count;
  if (atomic_load(&rule) == MIX_BANDS_NEVER || executable->threads < 1) return true;
  size_t total = 0;
  for (int i = 0; i < count; i++) total += (size_t)mix_step_access_count(executable, i);
  scratch *x = mix_calloc(1, sizeof *x);
  mix_range_access *memory = mix_calloc(total + 1, sizeof *memory);
  executable->bands = mix_calloc((size_t)count / 2 + 1, sizeof *executable->bands);
  if (x && memory && executable->bands) {
    x->set.list = memory;
    for (int i = 0; i < count;) {
      const mix_host_bands group = best_group(executable, i, x);
      if (group.end) form(executable, &group);
      i = group.end ? group.end : i + 1;
    }
  }
  const bool good = x && memory && executable->bands;
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
      const mix_host_step *host = &executable->steps[i];
      host->kernel->run_band(&host->args,
                             &(const mix_band){.rows = bands->rows,
                                               .begin = row,
                                               .end = end - row < bands->band ? end : row + bands->band,
                                               .kept = host->kept});
    }
  for (int i = bands->begin; i < bands->end; i++) {
    const mix_host_step *host = &executable->steps[i];
    if (host->late) host->kernel->end_bands(&host->args, team);
  }
}
