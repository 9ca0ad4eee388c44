/* libFuzzer target: any bytes as a checkpoint of two models that a host gives back, as they are and with a
 * corrected checksum. */
#include "sealed_checkpoint.h"
#include <mixtape/mixtape.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Created once, outside the root scope. */
static mix_checkpoint *checkpoint;
static mix_dataset *dataset;

static mix_model *model_of(int64_t units) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *x = mix_call(mix_dropout(.rate = 0.5, .seed = 1), mix_call(mix_dense(.units = units), inputs));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1), x));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "sgd");
  return model;
}

static void make_checkpoint(void) {
  MIX_SCOPE {
    mix_tensor *x = mix_tensor_from((const float[]){1, 2, 3, 4}, MIX_FLOAT32, MIX_SHAPE(4, 1));
    dataset =
        mix_retain(mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(x, x), 4, .seed = 1), 2));
    checkpoint = mix_retain(mix_checkpoint_new(NULL, .models = mix_list_of(model_of(2), model_of(3))));
    mix_checkpoint_put(checkpoint, "half", mix_scalar(1, MIX_BFLOAT16));
  }
}

static int64_t give_back(const void *data, size_t size) {
  int64_t step = -1;
  MIX_SCOPE { step = mix_checkpoint_from_memory(checkpoint, data, size, mix_dataset_iterate(dataset)); }
  mix_error_clear();
  return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!checkpoint) make_checkpoint();
  give_back(data, size);
  uint8_t *sealed = sealed_checkpoint(data, size);
  if (sealed) give_back(sealed, size);
  mix_free(sealed);
  return 0;
}
