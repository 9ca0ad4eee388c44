/* tar archives built byte by byte. */
#ifndef TESTS_FORMATS_TAR_BYTES_H
#define TESTS_FORMATS_TAR_BYTES_H

#include "formats/idx_bytes.h"

/* A file, or a folder (type '5') without content. */
static inline void put_tar_member(bytes *b, const char *path, char type, const void *data, size_t size) {
  char header[512] = "";
  unsigned sum = 0;
  snprintf(header, 100, "%s", path);
  snprintf(header + 100, 8, "0000644");
  snprintf(header + 124, 12, "%011o", (unsigned)size);
  header[156] = type;
  memcpy(header + 257, "ustar\00000", 8);
  memset(header + 148, ' ', 8);
  for (int i = 0; i < 512; i++) sum += (unsigned char)header[i];
  snprintf(header + 148, 8, "%06o", sum);
  put(b, header, 512);
  put(b, data, size);
  static const char zeros[512];
  put(b, zeros, (512 - size % 512) % 512);
}
static inline void put_tar_end(bytes *b) {
  static const char zeros[1024];
  put(b, zeros, sizeof zeros);
}

#endif
