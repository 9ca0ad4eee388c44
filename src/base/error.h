/* How the library records an error: the first one of a thread stands until it is cleared. */
#ifndef MIX_BASE_ERROR_H
#define MIX_BASE_ERROR_H

#include <mixtape/status.h>

/* Records an error unless one is pending, and returns NULL. The message names the call, the object, what was got and what was
 * expected, and the remedy: mix_fail(MIX_VALUE_ERROR, "dense: units is %lld; expected a positive number", units). */
void *mix_fail(mix_status status, const char *format, ...) MIX_PRINTF(2, 3);
/* The same, returning the status that is now pending. */
mix_status mix_fail_status(mix_status status, const char *format, ...) MIX_PRINTF(2, 3);
/* Out of memory for `what`; formats without allocating. Returns NULL. */
void *mix_fail_memory(const char *what);
/* Is an error pending on this thread? The first line of every constructor, operation and action. */
static inline bool mix_failed(void) { return mix_error() != MIX_OK; }
/* The same first line for what works on an object: false also where that is NULL, with a TypeError recorded, "call: got NULL; expected a
 * layer". Look-ups, which give NULL or 0 for no object, do without. */
bool mix_given(const void *object, const char *call, const char *expected);
/* What a caller's function returned; NULL with an error recorded where it gave NULL and left none. */
void *mix_returned(void *object, const char *call);

/* Copies the options of a caller compiled against an older struct into a zeroed current one; refuses a size it does not know. */
bool mix_options_copy(void *current, size_t current_size, const void *options, const char *call);
#define MIX_OPTIONS(type, name, options, call)                                                                                 \
  type name;                                                                                                                   \
  if (!mix_options_copy(&name, sizeof name, options, call)) return 0

/* Sends a message to the log callback. */
void mix_log_message(mix_log_level level, const char *format, ...) MIX_PRINTF(2, 3);
/* The same for a text of any length, whole. */
void mix_log_text(mix_log_level level, const char *message);
/* Is the word in the comma-separated MIXTAPE_VERBOSE ("dispatch", "compile", "amp")? */
bool mix_verbose(const char *word);

#endif
