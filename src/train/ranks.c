/* A fit on several ranks: the same run everywhere, from the same weights. */
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

static void check_identity(mix_fit_state *f) {
  json_t *identity = identify(f);
  char *own = identity ? json_dumps(identity, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
  if (identity && !own) mix_fail_memory("the identity of a run");
  /* Every rank takes part, whatever has failed. */
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  char *first = mix_text_of_first_rank("fit", own ? own : "{}");
  if (first && identity) mix_run_identity_compare(identity, first);
  mix_error_put_back(&pending);
  free(own);
  mix_free(first);
  json_decref(identity);
}

bool mix_fit_join_ranks(mix_fit_state *f, bool prepared) {
  if (!mix_is_distributed()) return prepared;
  if (prepared) {
    check_identity(f);
  } else {
    mix_error_aside pending;
    mix_error_set_aside(&pending);
    mix_free(mix_text_of_first_rank("fit", "{}"));
    mix_error_put_back(&pending);
  }
  return mix_ranks_succeed("fit") && prepared;
}

/* Each rank has read the checkpoint itself, perhaps from another folder or an older state of it. */
static bool check_place(const mix_fit_state *f, int64_t epoch) {
  char own[64];
  snprintf(own, sizeof own, "epoch %lld, step %lld", (long long)epoch, (long long)f->history->steps);
  char *first = mix_text_of_first_rank("fit", own);
  if (first && strcmp(own, first))
    mix_fail(MIX_VALUE_ERROR,
             "fit: the checkpoint is at %s here, at %s on rank 0; all ranks must see one folder", own, first);
  mix_free(first);
  return mix_ranks_succeed("fit");
}

bool mix_fit_share_values(mix_fit_state *f, int64_t epoch) {
  if (!mix_is_distributed()) return !mix_failed();
  if (!mix_ranks_succeed("fit") || !check_place(f, epoch)) return false;
  mix_list *variables[] = {mix_layer_weights(f->model->layer),
                           mix_optimizer_variables(f->model->state->optimizer)};
  for (int i = 0; i < 2; i++)
    if (!variables[i] || mix_broadcast_variables(variables[i]) != MIX_OK) return false;
  return true;
}
