/* The search for steps to run again. A set is good if the memory fits, and among those the one of least time.
 * Deep graphs need segments: values between kept ones are dropped, and run again when the backward pass comes
 * to their segment (Chen et al., "Training deep nets with sublinear memory cost", 2016). Which values are
 * dropped, beside the kept ones, goes by time for bytes. */
#include "compile/repeat_search.h"

#include <stdlib.h>
#include <string.h>

typedef struct candidate {
  int step;
  double score; /* seconds for bytes */
  size_t bytes;
} candidate;

typedef struct search {
  mix_repeat_problem *p;
  int boundary;
  size_t target;
  candidate *candidates; /* cheapest bytes first */
  int count;
  bool *kept;    /* by step: between segments */
  bool *trial;   /* by step */
  size_t *cross; /* by step: bytes that later steps up to the boundary read */
  bool *best;
  mix_repeat_outcome found;
  bool any, failed;
} search;

/* Is outcome a better than b? */
static bool is_better(const search *s, const mix_repeat_outcome *a, const mix_repeat_outcome *b) {
  const size_t over_a = a->peak > s->target ? a->peak : s->target,
               over_b = b->peak > s->target ? b->peak : s->target;
  return over_a != over_b ? over_a < over_b : a->seconds < b->seconds;
}

/* Simulates the trial and keeps it if it is the best. */
static bool try_trial(search *s, mix_repeat_outcome *outcome) {
  if (!mix_repeat_simulate(s->p, s->boundary, s->trial, NULL, outcome)) return s->failed = true, false;
  if (s->any && !is_better(s, outcome, &s->found)) return false;
  s->found = *outcome;
  s->any = true;
  memcpy(s->best, s->trial, (size_t)s->p->step_count);
  return true;
}

/* ---- candidates ---- */

static int by_score(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  return x->step - y->step;
}

static bool find_candidates(search *s) {
  const mix_repeat_problem *p = s->p;
  int *last = mix_ir_ints(p->ir, p->value_count + 1), *last_early = mix_ir_ints(p->ir, p->value_count + 1);
  if (!last || !last_early) return false;
  for (int t = 0; t < p->step_count; t++)
    for (int i = 0; i < p->steps[t].read_count; i++) {
      last[p->steps[t].reads[i]] = t;
      if (t <= s->boundary) last_early[p->steps[t].reads[i]] = t;
    }
  for (int t = 0; t <= s->boundary && t < p->step_count; t++) {
    const mix_repeat_step *step = &p->steps[t];
    size_t late = 0, all = 0;
    for (int i = 0; i < step->write_count; i++) {
      const int value = step->writes[i];
      all += p->bytes[value];
      if (last[value] > s->boundary) late += p->bytes[value];
      if (t < last_early[value]) {
        s->cross[t] += p->bytes[value];
        s->cross[last_early[value]] -= p->bytes[value];
      }
    }
    if (!step->may_repeat || !all) continue;
    s->candidates[s->count++] =
        (candidate){.step = t, .score = step->seconds / (double)(late ? late : all), .bytes = late};
  }
  for (int t = 1; t <= s->boundary; t++) s->cross[t] += s->cross[t - 1];
  qsort(s->candidates, (size_t)s->count, sizeof *s->candidates, by_score);
  return true;
}

/* ---- segments ---- */

static void keep_across(search *s, int cut) {
  const mix_repeat_problem *p = s->p;
  for (int t = cut + 1; t <= s->boundary; t++)
    for (int i = 0; i < p->steps[t].read_count; i++) {
      const int maker = p->maker[p->steps[t].reads[i]];
      if (maker >= 0 && maker <= cut) s->kept[maker] = true;
    }
}

/* Puts cuts between `segments` parts of about the same late bytes, each where least bytes cross nearby. */
static bool keep_between_segments(search *s, int segments) {
  const int steps = s->boundary + 1;
  size_t *before = mix_ir_array(s->p->ir, steps + 1, sizeof *before);
  if (!before) return false;
  for (int i = 0; i < s->count; i++) before[s->candidates[i].step + 1] += s->candidates[i].bytes;
  for (int t = 0; t < steps; t++) before[t + 1] += before[t];
  memset(s->kept, 0, (size_t)s->p->step_count);
  for (int c = 1; c < segments; c++) {
    const size_t share = before[steps] / (size_t)segments, wanted = share * (size_t)c;
    int best = -1;
    for (int t = 0; t < steps; t++) {
      const size_t away = before[t + 1] > wanted ? before[t + 1] - wanted : wanted - before[t + 1];
      if (away <= share / 3 && (best < 0 || s->cross[t] < s->cross[best])) best = t;
    }
    if (best >= 0) keep_across(s, best);
  }
  return true;
}

/* Drops the first `count` candidates, but for what is kept. */
static bool try_first(search *s, int count, mix_repeat_outcome *outcome) {
  memset(s->trial, 0, (size_t)s->p->step_count);
  for (int i = 0; i < count; i++) s->trial[s->candidates[i].step] = !s->kept[s->candidates[i].step];
  try_trial(s, outcome);
  return !s->failed;
}

/* Of the sets of this family: the least that fits. */
static bool try_family(search *s, int segments) {
  mix_repeat_outcome outcome;
  int low = 0, high = s->count;
  if (!keep_between_segments(s, segments) || !try_first(s, s->count, &outcome)) return false;
  if (outcome.peak > s->target) { /* the least may be where not all is dropped */
    for (int part = 1; part < 4 && s->p->visits_left; part++)
      if (!try_first(s, s->count * part / 4, &outcome)) return false;
    return true;
  }
  while (high - low > 1 && s->p->visits_left) {
    const int middle = (low + high) / 2;
    if (!try_first(s, middle, &outcome)) return false;
    if (outcome.peak <= s->target)
      high = middle;
    else
      low = middle;
  }
  return true;
}

/* ---- single changes ---- */

enum { FEW = 40 };

/* Changes steps a and b (-1: none) of a set if that makes it better. */
static bool flip(search *s, bool *set, mix_repeat_outcome *outcome, int a, int b) {
  mix_repeat_outcome changed;
  memcpy(s->trial, set, (size_t)s->p->step_count);
  s->trial[a] = !s->trial[a];
  if (b >= 0) s->trial[b] = !s->trial[b];
  try_trial(s, &changed);
  if (s->failed || !is_better(s, &changed, outcome)) return false;
  memcpy(set, s->trial, (size_t)s->p->step_count);
  *outcome = changed;
  return true;
}

/* Changes that make a set better: of single steps, the costliest first, and where there are few of pairs.
 * False: there was none. */
static bool improve(search *s, bool *set, mix_repeat_outcome *outcome) {
  bool any = false;
  for (int i = s->count - 1; i >= 0 && s->p->visits_left && !s->failed; i--)
    any |= flip(s, set, outcome, s->candidates[i].step, -1);
  for (int i = 0; i < s->count && s->count <= FEW && !any; i++)
    for (int j = 0; j < i && s->p->visits_left && !s->failed; j++)
      any |= flip(s, set, outcome, s->candidates[i].step, s->candidates[j].step);
  return any;
}

/* The best set, and where there are few candidates also none and all of them, each made better. */
static bool climb(search *s) {
  bool *set = mix_ir_flags(s->p->ir, s->p->step_count + 1);
  if (!set) return false;
  for (int start = 0; start < 3 && !s->failed; start++) {
    mix_repeat_outcome outcome = s->found;
    memcpy(set, s->best, (size_t)s->p->step_count);
    if (start && s->count > FEW) break;
    for (int i = 0; i < s->count && start; i++) set[s->candidates[i].step] = start == 2;
    if (start && !mix_repeat_simulate(s->p, s->boundary, set, NULL, &outcome)) return false;
    while (s->p->visits_left && !s->failed && improve(s, set, &outcome)) continue;
  }
  return !s->failed;
}

bool mix_repeat_search(mix_repeat_problem *problem, int boundary, size_t target, bool *dropped,
                       mix_repeat_outcome *outcome) {
  static const int families[] = {1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128};
  const int steps = problem->step_count;
  search s = {.p = problem,
              .boundary = boundary,
              .target = target,
              .candidates = mix_ir_array(problem->ir, steps + 1, sizeof *s.candidates),
              .kept = mix_ir_flags(problem->ir, steps + 1),
              .trial = mix_ir_flags(problem->ir, steps + 1),
              .cross = mix_ir_array(problem->ir, steps + 1, sizeof *s.cross),
              .best = dropped};
  mix_repeat_outcome plain;
  if (!s.candidates || !s.kept || !s.trial || !s.cross || !find_candidates(&s)) return false;
  try_trial(&s, &plain); /* nothing dropped */
  for (size_t f = 0; f < sizeof families / sizeof *families && !s.failed && s.found.peak; f++)
    if (families[f] == 1 || (families[f] < s.count && problem->visits_left))
      if (!try_family(&s, families[f])) return false;
  if (s.failed || !climb(&s)) return false;
  *outcome = s.found;
  bool *repeated = s.trial; /* what nothing needs is not dropped */
  if (!mix_repeat_simulate(problem, boundary, dropped, repeated, outcome)) return false;
  memcpy(dropped, repeated, (size_t)steps);
  return true;
}
