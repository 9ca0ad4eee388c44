/* Downloads one file with libcurl, which is loaded on first use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct mix_download_request {
  const char *url;
  const char *sha256; /* 64 hexadecimal digits, lower case */
  size_t limit;       /* more bytes are an error */
  bool local_files;   /* also accept file:// (for tests); else https only, redirections included */
} mix_download_request;

/* Returns the checked content; mix_free it. On failure returns NULL with the reason in `reason` and records
 * no error, because the caller's message also says what else it tried. */
void *mix_download(const mix_download_request *request, size_t *size, char *reason, size_t reason_size);
