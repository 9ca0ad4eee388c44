/* Internals of precision tuning: its result, run by run. */
#pragma once

#include "base/object.h"
#include "base/text.h"
#include <mixtape/tuning.h>

typedef enum mix_tune_purpose {
  MIX_TUNE_FLOAT32,
  MIX_TUNE_SEARCH,
  MIX_TUNE_REDUCE,
  MIX_TUNE_CONFIRM
} mix_tune_purpose;

typedef struct mix_tune_record {
  mix_tune_purpose purpose;
  uint64_t seed;
  double loss; /* not a number: without a sign, which would be printed */
  bool passed;
  const char *stopped; /* constant; NULL: it ran to its end */
  bool *set;           /* one boolean a layer; NULL: float32 */
  bool *suspects;      /* those that the run named */
  const char **names;  /* of the set, ended by NULL; made when asked for */
} mix_tune_record;

struct mix_tuning {
  mix_object object;
  const char **layers; /* interned */
  int layer_count;
  const char *policy, *simulate; /* interned */
  const char *status;            /* constant */
  double mean, deviation, limit;
  mix_tune_record *runs;
  int run_count, run_capacity;
  int found;   /* the run whose set is the result and was confirmed; -1: none */
  bool larger; /* smaller sets passed the search, but not on new seeds */
  char *table, *json, *overrides, *policy_map;
};

/* tuning.c */
mix_tuning *mix_tuning_new(const char *const *layers, const char *policy);
/* Appends a run with a copy of the set; NULL: float32. NULL with the error recorded. */
mix_tune_record *mix_tuning_append(mix_tuning *tuning, const bool *set);
bool mix_tuning_given(const mix_tuning *tuning, const char *call);
/* The names of a run's set, ended by NULL. NULL: float32, or with the error recorded. */
const char *const *mix_tuning_names(const mix_tuning *tuning, int run);
const char *mix_tune_purpose_name(mix_tune_purpose purpose);
int mix_tune_size(const bool *set, int count);

/* text.c: the names, of an array ended by NULL, each in quotes, with a text between. */
void mix_tune_put_names(mix_text *text, const char *const *names, const char *quote, const char *between);

/* trial.c: one run of the caller's function. */
typedef struct mix_tune_trials {
  const mix_tune_options *options; /* resolved */
  mix_tuning *tuning;
} mix_tune_trials;
/* Runs it under the policy with that set in float32; NULL: under float32. Appends the run; passed: its loss
 * is at most the limit. NULL with the error recorded. */
mix_tune_record *mix_tune_run(const mix_tune_trials *trials, const bool *set, uint64_t seed,
                              mix_tune_purpose purpose);
