/* One file from the network, by libcurl, which is loaded only when it is needed. */
#ifndef MIX_DATA_DATASETS_DOWNLOAD_H
#define MIX_DATA_DATASETS_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mix_download_request {
  const char *url;
  const char *sha256;    /* 64 hexadecimal digits, lower case */
  size_t limit;          /* more bytes are an error */
  bool local_files;      /* accept file:// too (tests); else https alone, redirections included */
} mix_download_request;

/* The content, checked; mix_free it. NULL with the reason in `reason` and no error recorded: the caller knows what else was tried. */
void *mix_download(const mix_download_request *request, size_t *size, char *reason, size_t reason_size);

#endif
