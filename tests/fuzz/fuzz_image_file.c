/* libFuzzer target: any bytes as an image, with each number of channels. */
#include "formats/image_file.h"
#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
    MIX_SCOPE { mix_image_read_memory("input", data, size, channels); }
  mix_error_clear();
  return 0;
}
