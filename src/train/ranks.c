/* Training on several ranks: the same run everywhere, from the same weights. */
#include "train/ranks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "distribute/distribute.h"
#include "optim/optimizer.h"
#include "saving/run_identity.h"
#include <mixtape/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct number {
  const char *name;
  int64_t value;
} number;

static json_t *identify(mix_fit_state *f) {
  const mix_fit_options *o = &f->options;
  const mix_batches *batches = f->adapter.batches;
  json_t *identity = mix_run_identity_new(f->model, f->model->state->optimizer);
  const number numbers[] = {
      {"batch_size", batches ? mix_batches_size(batches, 0) : 0},
      {"epochs", f->epochs},
      {"initial_epoch", o->initial_epoch},
      {"steps", o->steps},
      {"steps_per_epoch", o->steps_per_epoch},
      {"no_shuffle", o->no_shuffle},
      {"seed", (int64_t)f->seed},
      {"validation", f->validation_x != NULL},
      {"validation_steps", o->validation_steps},
      {"validation_freq", o->validation_freq},
      {"validation_batch_size", o->validation_batch_size},
      {"jit_compile", f->model->state->jit_compile},
      {"metrics", f->model->state->metric_count},
      {"whether the run resumes", f->model->resumes},
  };
  bool good = identity != NULL;
  for (size_t i = 0; good && i < sizeof numbers / sizeof *numbers; i++)
    good = mix_run_identity_number(identity, numbers[i].name, numbers[i].value);
  if (good)
    good = f->adapter.dataset ? mix_run_identity_dataset(identity, "data set", f->adapter.dataset)
                              : mix_run_identity_arrays(identity, "data", mix_batches_arrays(batches));
  if (good) return identity;
  json_decref(identity);
  return NULL;
}

bool mix_ranks_run_the_same(const char *call, json_t *identity) {
  /* Every rank takes part, whatever has failed. */
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  char *own = identity ? json_dumps(identity, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  if (identity && !own) mix_fail_memory("the identity of a run");
  char *first = mix_text_of_first_rank(call, own ? own : "{}");
  if (first && own) mix_run_identity_compare(identity, first);
  mix_error_put_back(&pending);
  free(own);
  mix_free(first);
  json_decref(identity);
  return mix_ranks_succeed(call);
}

bool mix_fit_join_ranks(mix_fit_state *f, bool prepared) {
  if (!mix_is_distributed()) return prepared;
  return mix_ranks_run_the_same("fit", prepared ? identify(f) : NULL) && prepared;
}

/* Each rank has read the checkpoint itself, perhaps from another folder or an older state of it. */
static bool check_place(const char *call, int64_t epoch, int64_t steps) {
  char own[64];
  snprintf(own, sizeof own, "epoch %lld, step %lld", (long long)epoch, (long long)steps);
  char *first = mix_text_of_first_rank(call, own);
  if (first && strcmp(own, first))
    mix_fail(MIX_VALUE_ERROR,
             "%s: the checkpoint is at %s here, at %s on rank 0; all ranks must see one folder", call, own,
             first);
  mix_free(first);
  return mix_ranks_succeed(call);
}

bool mix_ranks_share_values(const char *call, mix_model *model, mix_optimizer *optimizer, int64_t epoch,
                            int64_t steps) {
  if (!mix_is_distributed()) return !mix_failed();
  if (!mix_ranks_succeed(call) || !check_place(call, epoch, steps)) return false;
  mix_list *variables[] = {mix_layer_weights(model->layer), mix_optimizer_variables(optimizer)};
  for (int i = 0; i < 2; i++)
    if (!variables[i] || mix_broadcast_variables(variables[i]) != MIX_OK) return false;
  return true;
}

/* A callback that watches gradients asks for more of them, which ranks may have to exchange. */
static bool check_observer(const mix_fit_state *f) {
  const char *own = f->model->state->observer ? "a numerics report" : "no numerics report";
  char *first = mix_text_of_first_rank("fit", own);
  if (first && strcmp(own, first))
    mix_fail(MIX_VALUE_ERROR,
             "fit: %s here, %s on rank 0; give it to all ranks: only rank 0 writes its files", own, first);
  mix_free(first);
  return mix_ranks_succeed("fit");
}

bool mix_fit_share_values(mix_fit_state *f, int64_t epoch) {
  if (!mix_is_distributed()) return !mix_failed();
  return mix_ranks_succeed("fit") && check_observer(f) &&
         mix_ranks_share_values("fit", f->model, f->model->state->optimizer, epoch, f->history->steps);
}
