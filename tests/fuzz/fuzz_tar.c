/* libFuzzer target: any bytes as a tar archive, gzipped or plain. */
#include "base/alloc.h"
#include "formats/tar.h"
#include <mixtape/status.h>
#include <stdint.h>

static bool release(void *context, const char *path, void *content, size_t size) {
  (void)context, (void)path, (void)size;
  mix_free(content);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mix_tar_read("input", data, size, release, NULL);
  mix_error_clear();
  return 0;
}
