/* libFuzzer target: any bytes as the text of a model. A model that is read is written, read again and cloned.
 */
#include <ctype.h>
#include <mixtape/saving.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of three digits could ask for more memory than the machine has, which is no defect. */
static int has_large_number(const char *text) {
  for (int digits = 0; *text; text++) {
    digits = isdigit((unsigned char)*text) ? digits + 1 : 0;
    if (digits > 2) return 1;
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  memcpy(text, data, size);
  text[size] = 0;
  if (!has_large_number(text))
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
