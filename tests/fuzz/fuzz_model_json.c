/* libFuzzer target: any bytes as the text of a model. A model that is read is written, read again and cloned.
 */
#include "base/alloc.h"
#include "nn/layer/layer.h"
#include <mixtape/saving.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes may ask for any memory: more than a small machine has is an error, out of memory. */
enum { MEMORY = 1 << 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  memcpy(text, data, size);
  text[size] = 0;
  mix_zero_weights_set(true); /* initializers take most of the time, and are not what is tested */
  mix_limit_allocations(MEMORY);
  MIX_SCOPE {
    mix_model *model = mix_model_from_json(text);
    const char *written = model ? mix_model_to_json(model) : NULL;
    if (written && !mix_model_from_json(written)) abort(); /* what is written can be read */
    if (written && !mix_model_clone(model)) abort();
  }
  mix_error_clear();
  free(text);
  return 0;
}
