/* libFuzzer target: any bytes as a zip archive that somebody else wrote; the members of a .keras are read. */
#include "base/alloc.h"
#include "formats/zip_members.h"
#include <mixtape/object.h>
#include <mixtape/status.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const members[] = {"config.json", "metadata.json", "model.weights.h5"};
  MIX_SCOPE {
    mix_zip *zip = mix_zip_open_memory("input", data, size);
    for (int i = 0; zip && i < 3; i++) {
      size_t length;
      if (mix_zip_has(zip, members[i])) mix_free(mix_zip_read(zip, members[i], 1 << 24, &length));
      mix_error_clear();
    }
  }
  mix_error_clear();
  return 0;
}
