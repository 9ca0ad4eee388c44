/* Precision tuning: the float32 runs, the search, and the confirmation of what it found. */
#include "train/tune/search.h"
#include "train/tune/tune.h"

#include "base/alloc.h"
#include "base/error.h"
#include "nn/policy/quantization.h"
#include "tensor/type.h"
#include <math.h>
#include <string.h>

enum { SEEDS = 3, CONFIRMATIONS = 2, MAX_TRIALS = 100, EVERY = 25 };
static const double TOLERANCE = 0.01, DEVIATIONS = 2;

typedef struct state {
  mix_tune_trials trials;
  mix_tuning *tuning;
  int64_t left;      /* runs that the search may still make */
  uint64_t new_seed; /* this one and those after it were not used so far */
} state;

/* ---- options ---- */

static bool not_negative(int64_t value, const char *name) {
  if (value < 0)
    mix_fail_value("tune_precision: %s is %lld; expected a positive number, or 0 for the default", name,
                   (long long)value);
  return value >= 0;
}

static bool check_layers(const char *const *layers) {
  if (!layers || !layers[0])
    return mix_fail_value("tune_precision: no layer is given; expected the names of those to "
                          "choose from, ended by NULL");
  for (int i = 0; layers[i]; i++)
    for (int before = 0; before < i; before++)
      if (!strcmp(layers[i], layers[before]))
        return mix_fail_value("tune_precision: the layer '%s' is given twice", layers[i]);
  return true;
}

static bool is_16_bit(const char *name) {
  const mix_policy *policy = mix_policy_new(name);
  if (!mix_policy_check_global(policy, "tune_precision")) return false;
  if (!mix_dtype_is_16_bit(mix_policy_compute_dtype(policy)))
    mix_fail_value(
        "tune_precision: policy is %s; expected one that computes in 16 bits, such as mixed_float16", name);
  return !mix_failed();
}

/* Fills in the defaults. False with the error recorded. */
static bool resolve(mix_tune_options *o) {
  if (!o->function) return mix_fail_type("tune_precision: function is NULL");
  if (!check_layers(o->layers) || !not_negative(o->seeds, "seeds") ||
      !not_negative(o->confirmations, "confirmations") || !not_negative(o->max_trials, "max_trials") ||
      !not_negative(o->every, "every"))
    return false;
  if (!o->policy) o->policy = "mixed_float16";
  if (!o->seeds) o->seeds = SEEDS;
  if (!o->confirmations) o->confirmations = CONFIRMATIONS;
  if (!o->max_trials) o->max_trials = MAX_TRIALS;
  if (!o->seed) o->seed = 1;
  if (!o->every) o->every = EVERY;
  if (o->tolerance == 0) o->tolerance = TOLERANCE;
  if (o->tolerance == MIX_ZERO) o->tolerance = 0;
  if (o->seeds < SEEDS)
    return mix_fail_value("tune_precision: seeds is %lld; expected at least %d, for a deviation",
                          (long long)o->seeds, SEEDS);
  if (o->max_trials <= o->confirmations)
    return mix_fail_value("tune_precision: max_trials is %lld; expected more than the %lld runs that confirm",
                          (long long)o->max_trials, (long long)o->confirmations);
  if (!(o->tolerance >= 0) || isinf(o->tolerance))
    return mix_fail_value("tune_precision: tolerance is %g; expected a number from 0 on", o->tolerance);
  return is_16_bit(o->policy);
}

/* ---- float32 ---- */

/* The goal from all float32 runs so far. */
static void set_goal(mix_tuning *t, double tolerance) {
  bool same = true;
  double sum = 0, squares = 0, first = 0;
  int count = 0;
  for (int i = 0; i < t->run_count; i++) {
    if (t->runs[i].set) continue;
    if (!count++) first = t->runs[i].loss;
    sum += t->runs[i].loss;
    same &= t->runs[i].loss == first;
  }
  t->mean = same ? first : sum / count;
  for (int i = 0; i < t->run_count; i++)
    if (!t->runs[i].set) squares += (t->runs[i].loss - t->mean) * (t->runs[i].loss - t->mean);
  t->deviation = same ? 0 : sqrt(squares / (count - 1));
  t->limit = t->mean + (same ? tolerance * fabs(t->mean) : DEVIATIONS * t->deviation);
}

/* False with the error recorded. */
static bool run_float32(state *s, uint64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const mix_tune_record *run = mix_tune_run(&s->trials, NULL, first + (uint64_t)i, MIX_TUNE_FLOAT32);
    if (run && !isfinite(run->loss))
      mix_fail_runtime("tune_precision: in float32, with seed %llu, the loss is %g; make float32 train first "
                       "(a lower learning rate, clipped gradients, clean data)",
                       (unsigned long long)run->seed, run->loss);
    if (mix_failed()) return false;
  }
  set_goal(s->tuning, s->trials.options->tolerance);
  return true;
}

/* ---- the search ---- */

static const mix_tune_record *remembered(const mix_tuning *t, const bool *set) {
  for (int i = 0; i < t->run_count; i++) {
    const mix_tune_record *run = &t->runs[i];
    const bool searched = run->purpose == MIX_TUNE_SEARCH || run->purpose == MIX_TUNE_REDUCE;
    if (searched && !memcmp(run->set, set, (size_t)t->layer_count)) return run;
  }
  return NULL;
}

/* The smallest set that passed the search, of those with more than `above` layers; -1: none. */
static int smallest_passed(const mix_tuning *t, int above) {
  int best = -1, least = t->layer_count + 1;
  for (int i = 0; i < t->run_count; i++) {
    const mix_tune_record *run = &t->runs[i];
    if (!run->set || !run->passed || run->purpose == MIX_TUNE_CONFIRM) continue;
    const int size = mix_tune_size(run->set, t->layer_count);
    if (size > above && size < least) least = size, best = i;
  }
  return best;
}

static mix_answer ask(void *context, const bool *set, bool *suspects) {
  state *s = context;
  const mix_tune_record *run = remembered(s->tuning, set);
  if (!run) {
    if (!s->left) return MIX_NO_ANSWER;
    s->left--;
    run = mix_tune_run(&s->trials, set, s->trials.options->seed,
                       smallest_passed(s->tuning, -1) >= 0 ? MIX_TUNE_REDUCE : MIX_TUNE_SEARCH);
  }
  if (!run) return MIX_NO_ANSWER;
  if (suspects) memcpy(suspects, run->suspects, (size_t)s->tuning->layer_count);
  return run->passed ? MIX_ENOUGH : MIX_NOT_ENOUGH;
}

/* ---- the confirmation ---- */

/* Does the mean of new seeds pass? If it does not, these may be hard seeds: float32 gets them too, and what
 * is normal follows from all of its runs. */
static bool confirm(state *s, int index) {
  const int64_t count = s->trials.options->confirmations;
  const uint64_t first = s->new_seed;
  double mean = 0;
  bool stopped = false;
  s->new_seed += (uint64_t)count;
  for (int64_t i = 0; i < count; i++) {
    const bool *set = s->tuning->runs[index].set;
    const mix_tune_record *run = mix_tune_run(&s->trials, set, first + (uint64_t)i, MIX_TUNE_CONFIRM);
    if (!run) return false;
    mean += run->loss / (double)count;
    stopped |= run->stopped != NULL;
  }
  if (stopped || !isfinite(mean)) return false;
  return mean <= s->tuning->limit || (run_float32(s, first, count) && mean <= s->tuning->limit);
}

/* The next set to confirm: the smallest one of more than `above` layers that passed, at last all layers,
 * which the search may not have asked about. -1: none; *limited is set if it could not ask any more. */
static int next_to_confirm(state *s, int above, bool *limited) {
  mix_tuning *t = s->tuning;
  const int index = smallest_passed(t, above);
  if (index >= 0 || above < 0 || above == t->layer_count) return index;
  bool *all = mix_calloc((size_t)t->layer_count, sizeof *all);
  if (all) memset(all, true, (size_t)t->layer_count);
  const mix_answer answer = all ? ask(s, all, NULL) : MIX_NO_ANSWER;
  mix_free(all);
  *limited |= answer == MIX_NO_ANSWER;
  return answer == MIX_ENOUGH ? smallest_passed(t, above) : -1;
}

/* Confirms the smallest set or a larger one, while runs are left. */
static void confirm_smallest(state *s, bool limited) {
  mix_tuning *t = s->tuning;
  const int64_t each = s->trials.options->confirmations;
  s->left += each;
  for (int above = -1, index; t->found < 0 && (index = next_to_confirm(s, above, &limited)) >= 0;
       s->left -= each) {
    if (s->left < each) {
      limited = true;
      break;
    }
    const bool confirmed = confirm(s, index);
    if (mix_failed()) return;
    if (confirmed) t->found = index, t->larger = above >= 0;
    above = mix_tune_size(t->runs[index].set, t->layer_count);
  }
  if (mix_failed()) return;
  t->status = limited ? "limit" : t->found >= 0 ? "found" : "unconfirmed";
}

static void search(state *s) {
  mix_tuning *t = s->tuning;
  const mix_search question = {.count = t->layer_count, .ask = ask, .context = s};
  const mix_answer answer = mix_search_smallest(&question);
  if (mix_failed()) return;
  if (answer == MIX_NOT_ENOUGH)
    t->status = "none";
  else
    confirm_smallest(s, answer == MIX_NO_ANSWER);
}

static void tune(const mix_tune_options *options, mix_tuning *tuning) {
  state s = {.trials = {options, tuning},
             .tuning = tuning,
             .left = options->max_trials - options->confirmations,
             .new_seed = options->seed + (uint64_t)options->seeds};
  if (run_float32(&s, options->seed, options->seeds)) search(&s);
}

mix_tuning *mix_tune_precision_with(const mix_tune_options *given) {
  MIX_OPTIONS(mix_tune_options, options, given, "tune_precision");
  mix_tuning *tuning = NULL;
  MIX_SCOPE {
    if (resolve(&options)) tuning = mix_retain(mix_tuning_new(options.layers, options.policy));
    if (tuning) tuning->simulate = options.simulate ? mix_intern(options.simulate) : NULL;
    if (tuning && !mix_failed()) tune(&options, tuning);
  }
  mix_scoped(tuning);
  return mix_failed() ? NULL : tuning;
}
