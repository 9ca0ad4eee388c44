/* The memory of a plan in which dropped steps run a second time. */
#include "compile/repeat_search.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

typedef struct simulation {
  const mix_repeat_problem *p;
  const bool *dropped;
  bool *repeated;
  /* By value, and for its second run value_count later: the first and last position at which it is alive. */
  int *first, *last;
  int *current;   /* value -> the run that is read now */
  int *sequence;  /* position -> step, of second runs step_count later */
  int *read_runs; /* the runs that they read, one position after the other */
  int *stack, *found;
  int positions, reads;
  size_t *change; /* position -> bytes that begin to be alive there less those that ended */
  double seconds;
} simulation;

static bool begin(simulation *s, size_t reads) {
  const size_t steps = (size_t)s->p->step_count, values = (size_t)s->p->value_count;
  const size_t ints = 4 * values + values + 2 * steps + 2 * reads + 2 * steps + 8;
  int *memory = mix_alloc(sizeof *memory * ints);
  s->change = mix_calloc(2 * steps + 2, sizeof *s->change);
  s->repeated = mix_calloc(steps + 1, sizeof *s->repeated);
  s->first = memory;
  if (!memory || !s->change || !s->repeated) return false;
  s->last = s->first + 2 * values;
  s->current = s->last + 2 * values;
  s->sequence = s->current + values;
  s->read_runs = s->sequence + 2 * steps;
  s->stack = s->read_runs + 2 * reads;
  s->found = s->stack + steps + 1;
  for (size_t v = 0; v < 2 * values; v++) s->first[v] = -1;
  for (size_t v = 0; v < values; v++) s->current[v] = (int)v;
  return true;
}

static void run_step(simulation *s, int t, bool again) {
  const mix_repeat_step *step = &s->p->steps[t];
  for (int i = 0; i < step->read_count; i++) {
    const int run = step->reads_first ? step->reads[i] : s->current[step->reads[i]];
    s->last[run] = s->positions;
    s->read_runs[s->reads++] = run;
  }
  for (int i = 0; i < step->write_count; i++) {
    const int run = step->writes[i] + (again ? s->p->value_count : 0);
    if (s->first[run] < 0) s->first[run] = s->positions;
    s->last[run] = s->positions;
    s->current[step->writes[i]] = run;
  }
  if (again) s->seconds += step->seconds;
  s->sequence[s->positions++] = t + (again ? s->p->step_count : 0);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void push(simulation *s, int t, int *depth) {
  const mix_repeat_step *step = &s->p->steps[t];
  for (int i = 0; i < step->read_count && !step->reads_first; i++) {
    const int maker = s->p->maker[step->reads[i]];
    if (maker < 0 || !s->dropped[maker] || s->repeated[maker]) continue;
    s->repeated[maker] = true;
    s->stack[(*depth)++] = maker;
  }
}

/* Runs again what step t needs. */
static void repeat_operands(simulation *s, int t) {
  int depth = 0, count = 0;
  for (push(s, t, &depth); depth;) {
    const int found = s->stack[--depth];
    s->found[count++] = found;
    push(s, found, &depth);
  }
  if (count > 1) qsort(s->found, (size_t)count, sizeof *s->found, by_number);
  for (int i = 0; i < count; i++) run_step(s, s->found[i], true);
}

/* A run that takes the memory of an operand is as if that had ended before. */
static void end_lent(simulation *s, const mix_repeat_step *step, bool again, int at, const int *runs) {
  const mix_repeat_problem *p = s->p;
  unsigned taken = 0;
  for (int w = 0; w < step->write_count; w++) {
    const int run = step->writes[w] + (again ? p->value_count : 0);
    for (int i = 0; i < step->read_count && i < 32 && s->first[run] == at; i++) {
      if (!(step->lends[w] & ~taken & 1u << i) || s->last[runs[i]] != at) continue;
      taken |= 1u << i;
      s->last[runs[i]] = at - 1;
      break;
    }
  }
}

static void find_peak(simulation *s, mix_repeat_outcome *outcome) {
  const mix_repeat_problem *p = s->p;
  const int *runs = s->read_runs;
  for (int at = 0; at < s->positions; at++) {
    const bool again = s->sequence[at] >= p->step_count;
    const mix_repeat_step *step = &p->steps[s->sequence[at] - (again ? p->step_count : 0)];
    end_lent(s, step, again, at, runs);
    runs += step->read_count;
  }
  for (int v = 0; v < 2 * p->value_count; v++) {
    const int value = v % p->value_count;
    if (s->first[v] < 0 || !p->bytes[value]) continue;
    if (v >= p->value_count && s->first[v] == s->last[v] && p->steps[p->maker[value]].trims) continue;
    s->change[s->first[v]] += p->bytes[value];
    s->change[s->last[v] + 1] -= p->bytes[value];
  }
  size_t alive = 0;
  *outcome = (mix_repeat_outcome){.seconds = s->seconds};
  for (int at = 0; at < s->positions; at++) {
    alive += s->change[at];
    if (alive <= outcome->peak) continue;
    outcome->peak = alive;
    outcome->peak_step = s->sequence[at] % p->step_count;
  }
}

bool mix_repeat_simulate(mix_repeat_problem *problem, int boundary, const bool *dropped, bool *repeated,
                         mix_repeat_outcome *outcome) {
  simulation s = {.p = problem, .dropped = dropped};
  size_t reads = 0;
  for (int t = 0; t < problem->step_count; t++) reads += (size_t)problem->steps[t].read_count;
  const bool good = begin(&s, reads);
  for (int t = 0; t < problem->step_count && good; t++) {
    if (t > boundary) repeat_operands(&s, t);
    run_step(&s, t, false);
  }
  if (good) find_peak(&s, outcome);
  if (good && repeated) memcpy(repeated, s.repeated, (size_t)problem->step_count);
  problem->visits_left -=
      problem->visits_left < (uint64_t)s.positions ? problem->visits_left : (uint64_t)s.positions;
  mix_free(s.first);
  mix_free(s.change);
  mix_free(s.repeated);
  return good;
}
