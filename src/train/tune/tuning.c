/* The result of precision tuning as an object, and its accessors. */
#include "train/tune/tune.h"

#include "base/alloc.h"
#include "base/error.h"
#include <math.h>
#include <string.h>

static void finalize(void *object) {
  mix_tuning *t = object;
  for (int i = 0; i < t->run_count; i++) {
    mix_free(t->runs[i].set);
    mix_free(t->runs[i].suspects);
    mix_free(t->runs[i].names);
  }
  mix_free(t->runs);
  mix_free(t->layers);
  mix_free(t->table);
  mix_free(t->json);
  mix_free(t->overrides);
  mix_free(t->policy_map);
}
static const mix_class tuning_class = {.name = "precision tuning", .finalize = finalize};

bool mix_tuning_given(const mix_tuning *tuning, const char *call) {
  return mix_given(tuning, &tuning_class, call, "a precision tuning");
}

mix_tuning *mix_tuning_new(const char *const *layers, const char *policy) {
  mix_tuning *t = mix_object_new(sizeof *t, &tuning_class);
  if (!t) return NULL;
  t->found = -1;
  t->limit = NAN;
  t->status = "none";
  int count = 0;
  while (layers[count]) count++;
  t->layers = mix_calloc((size_t)count + 1, sizeof *t->layers);
  t->policy = mix_intern(policy);
  for (int i = 0; t->layers && i < count; i++) t->layers[i] = mix_intern(layers[i]);
  t->layer_count = t->layers ? count : 0;
  if (!mix_failed()) return mix_scoped(t);
  mix_release(t);
  return NULL;
}

mix_tune_record *mix_tuning_append(mix_tuning *t, const bool *set) {
  if (!mix_reserve(&t->runs, &t->run_capacity, t->run_count + 1, sizeof *t->runs)) return NULL;
  mix_tune_record *run = &t->runs[t->run_count];
  *run = (mix_tune_record){.loss = NAN};
  const size_t count = (size_t)t->layer_count;
  if (set && (run->set = mix_alloc(count))) memcpy(run->set, set, count);
  run->suspects = mix_calloc(count, sizeof *run->suspects);
  t->run_count++;
  return mix_failed() ? NULL : run;
}

int mix_tune_size(const bool *set, int count) {
  int size = 0;
  for (int i = 0; i < count; i++) size += set[i];
  return size;
}

const char *const *mix_tuning_names(const mix_tuning *t, int index) {
  mix_tune_record *run = &t->runs[index];
  if (!run->set) return NULL;
  if (!run->names) {
    const char **names = mix_calloc((size_t)mix_tune_size(run->set, t->layer_count) + 1, sizeof *names);
    for (int i = 0, used = 0; names && i < t->layer_count; i++)
      if (run->set[i]) names[used++] = t->layers[i];
    run->names = names;
  }
  return run->names;
}

const char *mix_tune_purpose_name(mix_tune_purpose purpose) {
  static const char *const names[] = {"float32", "search", "reduce", "confirm"};
  return names[purpose];
}

const char *mix_tuning_status(const mix_tuning *t) { return mix_is(t, &tuning_class) ? t->status : "none"; }
const char *const *mix_tuning_layers(const mix_tuning *t) {
  return mix_is(t, &tuning_class) && t->found >= 0 ? mix_tuning_names(t, t->found) : NULL;
}
int mix_tuning_count(const mix_tuning *t) {
  return mix_is(t, &tuning_class) && t->found >= 0 ? mix_tune_size(t->runs[t->found].set, t->layer_count)
                                                   : -1;
}
bool mix_tuning_confirmed(const mix_tuning *t) { return mix_is(t, &tuning_class) && t->found >= 0; }
int mix_tuning_run_count(const mix_tuning *t) { return mix_is(t, &tuning_class) ? t->run_count : 0; }

mix_status mix_tuning_get_goal(const mix_tuning *t, mix_tuning_goal *goal, size_t goal_size) {
  if (!mix_tuning_given(t, "tuning_get_goal")) return mix_error();
  const mix_tuning_goal full = {.mean = t->mean, .deviation = t->deviation, .limit = t->limit};
  return mix_struct_fill(goal, goal_size, &full, sizeof full, "tuning_get_goal");
}

mix_status mix_tuning_get_run(const mix_tuning *t, int index, mix_tuning_run *run, size_t run_size) {
  if (!mix_tuning_given(t, "tuning_get_run")) return mix_error();
  if (index < 0 || index >= t->run_count)
    return mix_fail_status(MIX_VALUE_ERROR, "tuning_get_run: index %d of %d", index, t->run_count);
  const mix_tune_record *record = &t->runs[index];
  const mix_tuning_run full = {.purpose = mix_tune_purpose_name(record->purpose),
                               .float32_layers = mix_tuning_names(t, index),
                               .seed = record->seed,
                               .loss = record->loss,
                               .passed = record->passed,
                               .stopped = record->stopped};
  return mix_failed() ? mix_error() : mix_struct_fill(run, run_size, &full, sizeof full, "tuning_get_run");
}
