/* Errors and log messages. A constructor or operation that fails returns NULL and records the first error
 * of its thread. While an error is pending, every constructor, operation and action fails at once, so one
 * check at the end of a chain is enough.
 * NULL instead of an object, or an object of another class, is a TypeError. Getters (of a name, a dtype, a
 * count, a borrowed member) return NULL or 0 for it and record nothing.
 * Each thread has its own pending error. An error in a worker thread of the library is recorded by the
 * call that waits for it. */
#ifndef MIXTAPE_STATUS_H
#define MIXTAPE_STATUS_H

#include <mixtape/api.h>

MIX_BEGIN_DECLARATIONS

/* code, name (of the Python exception that Keras raises, if there is one), meaning */
#define MIX_STATUS_LIST(X)                                                                                   \
  X(MIX_OK, "ok", "no error")                                                                                \
  X(MIX_TYPE_ERROR, "TypeError", "an argument of the wrong kind or dtype")                                   \
  X(MIX_VALUE_ERROR, "ValueError", "an argument of the right kind with a value that cannot be used")         \
  X(MIX_ATTRIBUTE_ERROR, "AttributeError", "an object has no attribute of that name")                        \
  X(MIX_RUNTIME_ERROR, "RuntimeError", "a call that is not possible in this state")                          \
  X(MIX_MEMORY_ERROR, "MemoryError", "out of memory")                                                        \
  X(MIX_IO_ERROR, "OSError", "a file that cannot be read or written")                                        \
  X(MIX_FORMAT_ERROR, "FormatError", "a file whose content is damaged or of another kind")                   \
  X(MIX_UNSUPPORTED, "NotImplementedError", "a combination that this build or machine does not offer")       \
  X(MIX_BUSY, "Busy", "the object is in use by another call")                                                \
  X(MIX_INTERNAL_ERROR, "InternalError", "a defect of the library: please report it")

typedef enum mix_status {
#define MIX_STATUS_ENUM(code, name, meaning) code,
  MIX_STATUS_LIST(MIX_STATUS_ENUM)
#undef MIX_STATUS_ENUM
} mix_status;

/* The pending error of this thread; MIX_OK if there is none. */
MIX_API mix_status mix_error(void);
/* The message of the pending error; "" if there is none. It names the call, the layer, the shapes and the
 * dtypes. Valid until the error is cleared. */
MIX_API const char *mix_error_message(void);
/* Clears the pending error. */
MIX_API void mix_error_clear(void);
/* Clears the pending error and returns its code. Copies the message, truncated to `size` bytes, into
 * `message` unless that is NULL. */
MIX_API mix_status mix_error_take(char *message, size_t size);
/* Records an error of a function of your own, such as a layer's or a callback's, unless one is pending, and
 * returns the code of the pending one. MIX_OK, which is no error, becomes InternalError. The message is
 * copied; a longer one than 1,023 bytes is cut. NULL: the name of the status. */
MIX_API mix_status mix_error_record(mix_status status, const char *message);
/* The name of a status: "ValueError" for MIX_VALUE_ERROR. */
MIX_API const char *mix_status_name(mix_status status);

/* PROGRESS: a piece of progress output, to be written unchanged. The others are whole messages without a
 * newline. */
typedef enum mix_log_level {
  MIX_LOG_DEBUG,
  MIX_LOG_INFO,
  MIX_LOG_WARNING,
  MIX_LOG_ERROR,
  MIX_LOG_PROGRESS
} mix_log_level;
typedef void (*mix_log_callback)(void *context, mix_log_level level, const char *message);
/* Sets the callback of the process that receives all messages. With NULL, the default, messages are
 * dropped. The callback may call the library. */
MIX_API void mix_set_log_callback(mix_log_callback callback, void *context);
/* A log callback that writes to standard error: progress unchanged, every other message as a line. */
MIX_API void mix_log_to_stderr(void *context, mix_log_level level, const char *message);

MIX_END_DECLARATIONS
#endif
