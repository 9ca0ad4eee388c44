/* Training on several ranks: the same run everywhere, from the same weights. */
#include "train/ranks.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "data/pipeline/pipeline.h"
#include "distribute/distribute.h"
#include "optim/shard.h"
#include "saving/run_identity.h"
#include <mixtape/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct number {
  const char *name;
  int64_t value;
} number;

/* Numbers of fit that all ranks must share. */
static bool add_numbers(const mix_fit_state *f, json_t *identity) {
  const mix_fit_options *o = &f->options;
  const mix_batches *batches = f->adapter.batches;
  const bool local = o->rows == MIX_LOCAL;
  const number numbers[] = {
      {"loop custom", false}, /* true in the program's other loop */
      {"rows", batches && !local ? mix_batches_rows(batches) : 0},
      {"batch_size", batches && !local ? mix_batches_size(batches, 0) : 0},
      {"epochs", f->epochs},
      {"initial_epoch", o->initial_epoch},
      {"steps", o->steps},
      {"steps_per_epoch", o->steps_per_epoch},
      {"no_shuffle", o->no_shuffle},
      {"validation", f->validation_x != NULL},
      {"validation_steps", o->validation_steps},
      {"validation_freq", o->validation_freq},
      {"validation_batch_size", o->validation_batch_size},
      {"memory budget", (int64_t)mix_memory_budget()},
      {"whether the run resumes", f->model->resumes},
  };
  bool good = true;
  for (size_t i = 0; good && i < sizeof numbers / sizeof *numbers; i++)
    good = mix_run_identity_number(identity, numbers[i].name, numbers[i].value);
  return good;
}

static bool add_rows(const mix_fit_state *f, json_t *identity) {
  const char *name = f->options.rows == MIX_LOCAL ? "MIX_LOCAL" : "MIX_SHARED";
  return mix_run_identity_set(identity, ".rows", json_string(name));
}

/* A seed that nobody gave is drawn from that of the process, which may have been set. */
static json_t *seed_json(const mix_fit_state *f) {
  char drawn[64];
  if (f->options.seed) return json_integer((json_int_t)f->options.seed);
  snprintf(drawn, sizeof drawn, "none (%llu was drawn)", (unsigned long long)f->seed);
  return json_string(drawn);
}

/* Validation data that were given as such. Those of a split are among the training data. */
static bool add_validation_data(const mix_fit_state *f, json_t *identity) {
  const mix_fit_options *o = &f->options;
  bool good = true;
  if (!o->validation_x || o->rows == MIX_LOCAL) return true;
  if (mix_is_dataset(o->validation_x))
    return mix_run_identity_dataset(identity, "validation data set", o->validation_x);
  MIX_SCOPE {
    const mix_data_adapter_data data = {
        .x = o->validation_x, .y = o->validation_y, .sample_weight = o->validation_sample_weight};
    mix_step_arguments arguments;
    mix_list *arrays = mix_data_adapter_arrays(f->model, &data, MIX_ADAPTER_TEST, "fit", &arguments);
    good = arrays && mix_run_identity_arrays(identity, "validation data", arrays);
  }
  return good;
}

static json_t *identify(mix_fit_state *f) {
  json_t *identity = mix_run_identity_new(f->model, f->model->state->optimizer);
  const bool good =
      identity && add_rows(f, identity) && add_numbers(f, identity) &&
      mix_run_identity_set(identity, "seed", seed_json(f)) &&
      mix_run_identity_set(identity, "validation_split", json_real(f->options.validation_split)) &&
      mix_run_identity_metrics(identity, f->model) && mix_callbacks_identify(&f->callbacks, identity) &&
      mix_fit_identify_data(f, identity) && add_validation_data(f, identity);
  if (good) return identity;
  json_decref(identity);
  return NULL;
}

/* The same numbers may come from another device, but not on one rank of several. */
static bool add_device(json_t *identity) {
  return mix_run_identity_set(identity, "device", json_string(mix_device()));
}

bool mix_ranks_run_the_same(const char *call, json_t *identity) {
  if (identity && !add_device(identity)) json_decref(identity), identity = NULL;
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
  if (!mix_ranks_run_the_same("fit", prepared ? identify(f) : NULL) || !prepared) return false;
  return f->options.rows == MIX_SHARED || mix_data_adapter_meet(&f->adapter, true);
}

/* Each rank has read the checkpoint itself, perhaps from another folder or an older state of it. */
static bool check_place(const char *call, int64_t epoch, int64_t steps) {
  char own[64];
  snprintf(own, sizeof own, "epoch %lld, step %lld", (long long)epoch, (long long)steps);
  char *first = mix_text_of_first_rank(call, own);
  if (first && strcmp(own, first))
    mix_fail_value("%s: the checkpoint is at %s here, at %s on rank 0; all ranks must see one folder", call,
                   own, first);
  mix_free(first);
  return mix_ranks_succeed(call);
}

bool mix_ranks_share_values(const char *call, mix_model *model, mix_optimizer *optimizer, int64_t epoch,
                            int64_t steps) {
  if (!mix_is_distributed()) return !mix_failed();
  if (!mix_ranks_succeed(call) || !check_place(call, epoch, steps)) return false;
  mix_list *all[] = {mix_layer_weights(model->layer), mix_optimizer_variables(optimizer)},
           *whole = mix_list_new(0, NULL);
  for (int l = 0; whole && l < 2; l++)
    for (int i = 0; i < mix_list_count(all[l]); i++) {
      mix_variable *variable = mix_list_get(all[l], i);
      if (!variable->share) mix_list_append(whole, variable);
    }
  /* The first step makes the state, from a seed that is each rank's own. */
  mix_optimizer *plain = mix_optimizer_plain(optimizer);
  mix_variable *seed = plain->built ? NULL : mix_optimizer_make_seed(plain);
  if (seed) mix_list_append(whole, seed);
  return !mix_failed() && mix_broadcast_variables(whole) == MIX_OK && mix_shards_share_state(plain);
}

bool mix_fit_share_values(mix_fit_state *f, int64_t epoch) {
  if (!mix_is_distributed()) return !mix_failed();
  return mix_ranks_succeed("fit") &&
         mix_ranks_share_values("fit", f->model, f->model->state->optimizer, epoch, f->history->steps);
}

/* One with save_freq saves after steps, when its rank alone knows of it. */
static bool saves_epochs(const mix_fit_state *f) {
  for (int i = 0; f->callbacks.items && i < mix_list_count(f->callbacks.items); i++) {
    const mix_callback *callback = mix_list_get(f->callbacks.items, i);
    if (callback->options.on_epoch_end && !strcmp(callback->options.name, "ModelCheckpoint")) return true;
  }
  return false;
}

bool mix_fit_find_saving_rank(mix_fit_state *f) {
  f->saves_on = MIX_NO_RANK;
  if (!mix_shards_wanted()) return true;
  const int ranks = mix_rank_count();
  int *saves = mix_calloc((size_t)ranks, sizeof *saves);
  if (saves && mix_gather_numbers("fit", saves_epochs(f), saves))
    for (int r = 0; r < ranks; r++)
      if (saves[r]) f->saves_on = f->saves_on == MIX_NO_RANK ? r : MIX_EVERY_RANK;
  mix_free(saves);
  return !mix_failed();
}
