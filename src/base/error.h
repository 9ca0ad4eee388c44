/* Recording of errors. The first error of a thread stays pending until it is cleared. */
#pragma once

#include <mixtape/status.h>

/* Records an error unless one is pending, and returns NULL. The message names the call, the object, the
 * value found, the value expected, and the remedy: mix_fail_value("dense: units is %lld; expected a
 * positive number", units). */
void *mix_fail(mix_status status, const char *format, ...) MIX_PRINTF(2, 3);
#define mix_fail_value(...) mix_fail(MIX_VALUE_ERROR, __VA_ARGS__)
#define mix_fail_type(...) mix_fail(MIX_TYPE_ERROR, __VA_ARGS__)
#define mix_fail_format(...) mix_fail(MIX_FORMAT_ERROR, __VA_ARGS__)
#define mix_fail_unsupported(...) mix_fail(MIX_UNSUPPORTED, __VA_ARGS__)
#define mix_fail_io(...) mix_fail(MIX_IO_ERROR, __VA_ARGS__)
#define mix_fail_runtime(...) mix_fail(MIX_RUNTIME_ERROR, __VA_ARGS__)
#define mix_fail_internal(...) mix_fail(MIX_INTERNAL_ERROR, __VA_ARGS__)
/* The same, but returns the pending status. */
mix_status mix_fail_status(mix_status status, const char *format, ...) MIX_PRINTF(2, 3);
/* Records that memory ran out for `what`, without allocating. Returns NULL. */
void *mix_fail_memory(const char *what);
/* True if an error is pending on this thread. Every constructor, operation and action checks this first. */
static inline bool mix_failed(void) { return mix_error() != MIX_OK; }
enum { MIX_ERROR_BYTES = 1024 }; /* of a message */
/* Sets a pending error aside, so that what follows can fail or answer on its own, and records it again; if
 * none was set aside, an error that is pending by then stays. */
typedef struct mix_error_aside {
  mix_status status;
  char message[MIX_ERROR_BYTES];
} mix_error_aside;
void mix_error_set_aside(mix_error_aside *error);
void mix_error_put_back(const mix_error_aside *error);
/* Checks the result of a user's function. If it returned NULL without recording an error, this records one
 * and returns NULL. */
void *mix_returned(void *object, const char *call);

/* Copies the caller's options into `current`. The struct of a caller compiled against older headers is
 * shorter; the missing fields become zero. An unknown size is an error. False while one is pending. */
bool mix_options_copy(void *current, size_t current_size, const void *options, const char *call);
/* Options that mix_options_copy does not take, because an error of their arguments is recorded. */
const void *mix_options_refused(void);
#define MIX_OPTIONS(type, name, options, call)                                                               \
  type name;                                                                                                 \
  if (!mix_options_copy(&name, sizeof name, options, call)) return 0
/* The other way: fills the caller's struct of `size` bytes, which may be shorter, and its size member. */
mix_status mix_struct_fill(void *to, size_t size, const void *from, size_t current_size, const char *call);

/* Sends a message to the log callback. */
void mix_log_message(mix_log_level level, const char *format, ...) MIX_PRINTF(2, 3);
/* The same for a string of any length, without truncation. */
void mix_log_text(mix_log_level level, const char *message);
/* True if the comma-separated variable MIXTAPE_VERBOSE contains the word ("dispatch", "compile", "amp"). */
bool mix_verbose(const char *word);
