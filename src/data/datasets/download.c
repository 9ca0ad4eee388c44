/* Downloads one file with libcurl and checks its SHA-256. */
#include "data/datasets/download.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "base/sha256.h"
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_SECONDS 20L
/* A transfer slower than this for SLOW_SECONDS is given up. */
#define SLOWEST_BYTES_A_SECOND 1024L
#define SLOW_SECONDS 30L

/* The libcurl functions used here, declared as in its own header. libcurl is loaded on the first download,
 * because few programs need one. */
static struct {
  CURL *(*easy_init)(void);
  CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
  CURLcode (*easy_perform)(CURL *);
  void (*easy_cleanup)(CURL *);
  CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
  const char *(*easy_strerror)(CURLcode);
  bool loaded;
} library;

static void load_library(void) {
  static const mix_library_function functions[] = {{"curl_easy_init", &library.easy_init},
                                                   {"curl_easy_setopt", &library.easy_setopt},
                                                   {"curl_easy_perform", &library.easy_perform},
                                                   {"curl_easy_cleanup", &library.easy_cleanup},
                                                   {"curl_easy_getinfo", &library.easy_getinfo},
                                                   {"curl_easy_strerror", &library.easy_strerror},
                                                   {NULL, NULL}};
  library.loaded =
      mix_load_library((const char *const[]){"libcurl.so.4", "libcurl-gnutls.so.4", NULL}, functions);
}

typedef struct received {
  unsigned char *data;
  size_t size, capacity, limit;
  bool too_large;
} received;

static size_t receive(char *data, size_t one, size_t count, void *context) {
  received *r = context;
  size_t size = one * count;
  if (size > r->limit - r->size) {
    r->too_large = true;
    return 0;
  }
  if (r->size + size > r->capacity) {
    size_t capacity = r->capacity ? 2 * r->capacity : 1 << 16;
    while (capacity < r->size + size) capacity *= 2;
    unsigned char *grown = mix_realloc(r->data, capacity);
    if (!grown) return 0;
    r->data = grown;
    r->capacity = capacity;
  }
  memcpy(r->data + r->size, data, size);
  r->size += size;
  return size;
}

static bool checksum_matches(const received *r, const char *expected, char found[MIX_SHA256_DIGITS + 1]) {
  unsigned char digest[MIX_SHA256_BYTES];
  mix_sha256_of(r->data, r->size, digest);
  mix_sha256_text(digest, found);
  return strcmp(found, expected) == 0;
}

static CURLcode set_options(CURL *curl, const mix_download_request *request, received *r) {
  const long protocols = CURLPROTO_HTTPS | (request->local_files ? CURLPROTO_FILE : 0);
  CURLcode code = CURLE_OK;
#define SET(option, value)                                                                                   \
  if (code == CURLE_OK) code = library.easy_setopt(curl, option, value)
  SET(CURLOPT_URL, request->url);
/* The string variants of these options came with libcurl 7.85, which deprecated the numeric ones. Every
 * libcurl.so.4 has the numeric ones. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  SET(CURLOPT_PROTOCOLS, protocols);
  SET(CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS);
#pragma GCC diagnostic pop
  SET(CURLOPT_FOLLOWLOCATION, 1L);
  SET(CURLOPT_MAXREDIRS, 5L);
  SET(CURLOPT_FAILONERROR, 1L);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
  SET(CURLOPT_LOW_SPEED_LIMIT, SLOWEST_BYTES_A_SECOND);
  SET(CURLOPT_LOW_SPEED_TIME, SLOW_SECONDS);
  SET(CURLOPT_USERAGENT, "mixtape/" MIXTAPE_VERSION);
  SET(CURLOPT_WRITEFUNCTION, receive);
  SET(CURLOPT_WRITEDATA, (void *)r);
#undef SET
  return code;
}

void *mix_download(const mix_download_request *request, size_t *size, char *reason, size_t reason_size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_library);
  if (!library.loaded) {
    snprintf(reason, reason_size, "libcurl cannot be loaded");
    return NULL;
  }
  CURL *curl = library.easy_init();
  if (!curl) {
    snprintf(reason, reason_size, "libcurl cannot be initialised");
    return NULL;
  }
  received r = {.limit = request->limit};
  char found[MIX_SHA256_DIGITS + 1] = "";
  CURLcode code = set_options(curl, request, &r);
  if (code == CURLE_OK) code = library.easy_perform(curl);
  long answer = 0;
  library.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
  library.easy_cleanup(curl);
  void *result = NULL;
  if (r.too_large)
    snprintf(reason, reason_size, "more than the %zu bytes that were expected", request->limit);
  else if (code == CURLE_HTTP_RETURNED_ERROR)
    snprintf(reason, reason_size, "the server answered %ld", answer);
  else if (code != CURLE_OK)
    snprintf(reason, reason_size, "%s", library.easy_strerror(code));
  else if (r.size == 0)
    snprintf(reason, reason_size, "the file is empty");
  else if (!checksum_matches(&r, request->sha256, found))
    snprintf(reason, reason_size, "its SHA-256 is %s; expected %s", found, request->sha256);
  else
    result = r.data;
  if (!result)
    mix_free(r.data);
  else
    *size = r.size;
  return result;
}
