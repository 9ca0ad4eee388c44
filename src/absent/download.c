/* In place of data/datasets/download.c. */
#include "base/features.h"
#include "data/datasets/download.h"

void *mix_download(const mix_download_request *request, size_t *size, char *reason, size_t reason_size) {
  mix_absent_reason("download", reason, reason_size);
  return NULL;
}
