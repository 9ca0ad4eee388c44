/* libFuzzer target: any bytes as a checkpoint that a run resumes from, as they are and with a corrected
 * checksum. */
#include "sealed_checkpoint.h"
#include "train/fit_state.h"
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The run: a small model with a random generator, a data set and a callback with state. Created once, outside
 * the root scope. */
static mix_model *model;
static mix_dataset *dataset;
static mix_list *callbacks;

static void make_run(void) {
  MIX_SCOPE {
    mix_tensor *x = mix_tensor_from((const float[]){1, 2, 3, 4}, MIX_FLOAT32, MIX_SHAPE(4, 1)),
               *inputs = mix_input(.shape = MIX_SHAPE(1));
    mix_tensor *outputs =
        mix_call(mix_dropout(.rate = 0.5, .seed = 1), mix_call(mix_dense(.units = 1), inputs));
    model = mix_retain(mix_model_new(inputs, outputs));
    mix_model_compile(model, .loss = "mse", .optimizer_name = "sgd");
    dataset =
        mix_retain(mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(x, x), 4, .seed = 1), 2));
    callbacks = mix_retain(mix_list_of(mix_early_stopping(.monitor = "loss", .restore_best_weights = true)));
  }
}

static bool fit_state_of(mix_fit_state *f, const char *folder) {
  *f = (mix_fit_state){.model = model, .history = mix_history_new()};
  mix_data_adapter_data given = {.x = dataset};
  mix_checkpoint_options options = {.size = sizeof options, .folder = folder, .model = model};
  f->checkpoint = mix_checkpoint_with(&options);
  return f->history && mix_callbacks_open(&f->callbacks, model, callbacks, "fit") &&
         mix_data_adapter_open(&f->adapter, model, &given, MIX_ADAPTER_TRAIN, "fit");
}

static void take_over(const void *data, size_t size) {
  MIX_SCOPE {
    mix_fit_state f;
    int64_t epoch;
    if (fit_state_of(&f, "/nowhere") && (f.resumed = mix_archive_load_memory("input", data, size)))
      mix_backup_resume(&f, &epoch);
    mix_data_adapter_close(&f.adapter);
  }
  mix_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!model) make_run();
  take_over(data, size);
  uint8_t *sealed = sealed_checkpoint(data, size);
  if (!sealed) return 0;
  take_over(sealed, size);
  mix_free(sealed);
  return 0;
}
