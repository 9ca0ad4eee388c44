/* Errors and messages. A constructor or operation that fails returns NULL and records the first error of its thread; while an
 * error is pending every constructor, operation and action fails at once with it, so that a chain is checked once at its end. NULL where
 * an object is wanted is a TypeError; only look-ups (a name, a dtype, a count, a member that is borrowed) give NULL or 0 for no object, and
 * record nothing. The errors of one thread are its own: what a library's thread meets is that of the call which waits for it. */
#ifndef MIXTAPE_STATUS_H
#define MIXTAPE_STATUS_H

#include <mixtape/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, name, what it stands for (the Python exception that Keras raises, where there is one) */
#define MIX_STATUS_LIST(X)                                                                                                     \
  X(MIX_OK, "ok", "no error")                                                                                                  \
  X(MIX_TYPE_ERROR, "TypeError", "an argument of the wrong kind or dtype")                                                     \
  X(MIX_VALUE_ERROR, "ValueError", "an argument of the right kind with a value that cannot be used")                           \
  X(MIX_ATTRIBUTE_ERROR, "AttributeError", "an object has no attribute of that name")                                          \
  X(MIX_RUNTIME_ERROR, "RuntimeError", "a call that is not possible in this state")                                            \
  X(MIX_MEMORY_ERROR, "MemoryError", "out of memory")                                                                          \
  X(MIX_IO_ERROR, "OSError", "a file that cannot be read or written")                                                          \
  X(MIX_FORMAT_ERROR, "FormatError", "a file whose content is damaged or of another kind")                                     \
  X(MIX_UNSUPPORTED, "NotImplementedError", "a combination that this build or machine does not offer")                         \
  X(MIX_BUSY, "Busy", "the object is in use by another call")                                                                  \
  X(MIX_INTERNAL_ERROR, "InternalError", "a defect of the library: please report it")

typedef enum mix_status {
#define MIX_STATUS_ENUM(code, name, meaning) code,
  MIX_STATUS_LIST(MIX_STATUS_ENUM)
#undef MIX_STATUS_ENUM
} mix_status;

/* The pending error of this thread, MIX_OK where there is none. */
MIX_API mix_status mix_error(void);
/* Its message, "" where there is none; valid until the error is cleared. Names the call, the layer, the shapes and the dtypes. */
MIX_API const char *mix_error_message(void);
/* Forgets the pending error. */
MIX_API void mix_error_clear(void);
/* Forgets the pending error and returns its code; copies the message (cut to `size`) into `message` unless that is NULL. */
MIX_API mix_status mix_error_take(char *message, size_t size);
/* "ValueError" for MIX_VALUE_ERROR, and so on. */
MIX_API const char *mix_status_name(mix_status status);

/* PROGRESS: a piece of progress output, to be written as it is; the others are whole messages without a newline. */
typedef enum mix_log_level { MIX_LOG_DEBUG, MIX_LOG_INFO, MIX_LOG_WARNING, MIX_LOG_ERROR, MIX_LOG_PROGRESS } mix_log_level;
typedef void (*mix_log_callback)(void *context, mix_log_level level, const char *message);
/* All that the library has to say goes to this callback (process-wide); with none set, messages are dropped. */
MIX_API void mix_set_log_callback(mix_log_callback callback, void *context);
/* A callback to set: writes progress as it is and each message as a line to standard error. */
MIX_API void mix_log_to_stderr(void *context, mix_log_level level, const char *message);

#ifdef __cplusplus
}
#endif
#endif
