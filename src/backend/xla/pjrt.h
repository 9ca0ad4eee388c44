/* A PJRT plug-in: its functions, its client and the device that programs run on. All calls may come from any
 * thread. Errors of the plug-in are recorded as errors of this library. */
#pragma once

#include "backend/xla/pjrt_api.h"
#include "base/text.h"
#include "tensor/type.h"

typedef struct mix_pjrt {
  const char *path; /* interned */
  const pjrt_api *api;
  pjrt_client *client;     /* NULL: it compiles for the topology, and runs nothing */
  pjrt_topology *topology; /* NULL: there is a client */
  pjrt_device *const *devices;
  int device_count;
  const char *platform, *version; /* interned: "cpu", "tpu" */
  /* Can a copy to the device fail after its call, and the device go on? */
  bool copies_may_fail;
} mix_pjrt;

/* Loads the library and checks that it is a plug-in of a version that this library knows. A path without a
 * slash is searched as the loader does, and becomes the one that it found. It stays loaded for
 * good once it has been initialized. False with the error recorded. */
bool mix_pjrt_load(mix_pjrt *plugin, const char *path);
/* Makes the client with options of the plug-in's own, on the first device that it can reach. False with the
 * error recorded. */
bool mix_pjrt_connect(mix_pjrt *plugin, const pjrt_option *options, int count);
/* In place of a client: compiles for one device that is not here, with these facts of it (the text of a
 * GpuTargetConfigProto). False with the error recorded. */
bool mix_pjrt_describe_target(mix_pjrt *plugin, const char *facts);
/* NULL; in a child by fork of the process that made the client, whose threads are not there and whose locks
 * may be held for ever: why it cannot be used. Then no call reaches the plug-in, nothing of it is freed. */
const char *mix_pjrt_lost(void);
/* "TPU v5 lite" and the like; a text that says so if it has none. */
const char *mix_pjrt_device_kind(const mix_pjrt *plugin, int device);
/* Of the memory of the device that programs run on; 0: the plug-in does not say. */
size_t mix_pjrt_free_bytes(const mix_pjrt *plugin);
/* Lines on the platform, its version and its devices. */
void mix_pjrt_describe(const mix_pjrt *plugin, mix_text *text);

/* ---- calls ---- */

/* Calls a function with its arguments, of which the head need not be set. False with the error recorded,
 * which begins with `what`. */
bool mix_pjrt_call(const mix_pjrt *plugin, pjrt_call call, void *arguments, size_t size, const char *what);
enum { PJRT_ARGUMENTS = 192 }; /* bytes of the longest struct of arguments, and more */
#define MIX_PJRT_CALL(plugin, call, arguments, what)                                                         \
  ((void)sizeof(struct {                                                                                     \
     _Static_assert(sizeof(arguments) <= PJRT_ARGUMENTS, "larger than what a call copies");                  \
     int none;                                                                                               \
   }),                                                                                                       \
   mix_pjrt_call(plugin, call, &(arguments), sizeof(arguments), what))
/* Frees an object by its function; NULL: nothing. */
void mix_pjrt_destroy(const mix_pjrt *plugin, pjrt_call call, void *object);
/* Waits for an event and frees it; NULL: none. False with the error of what it stands for recorded. */
bool mix_pjrt_await(const mix_pjrt *plugin, pjrt_event *event, const char *what);
/* Has it happened? Does not wait. NULL: yes. */
bool mix_pjrt_is_ready(const mix_pjrt *plugin, pjrt_event *event);
/* mix_pjrt_await of an event that has happened, without a call that may wait. */
bool mix_pjrt_take(const mix_pjrt *plugin, pjrt_event *event, const char *what);

/* ---- programs and buffers (pjrt_run.c); NULL or false with the error recorded ---- */

/* A serialized CompileOptionsProto: one device, every float rounded to its dtype. Returns its size. */
enum { MIX_PJRT_OPTIONS = 2048 };
size_t mix_pjrt_options(const char *platform, char options[MIX_PJRT_OPTIONS]);
/* The same without folders of this machine. */
size_t mix_pjrt_options_of_program(const char *platform, char options[MIX_PJRT_OPTIONS]);
/* StableHLO text. `name`: of the function, for errors. */
pjrt_loaded *mix_pjrt_compile(const mix_pjrt *plugin, const char *text, size_t size, const char *name);
/* For the topology. */
pjrt_executable *mix_pjrt_compile_for_target(const mix_pjrt *plugin, const char *text, size_t size,
                                             const char *name);
/* The number of results; -1 with the error recorded. */
int mix_pjrt_result_count(const mix_pjrt *plugin, pjrt_loaded *loaded);
/* Begins a copy to the device. `*done`: the event after which the bytes may change, or NULL; unless they
 * `stay` until then, they are read before it returns. */
pjrt_buffer *mix_pjrt_begin_upload(const mix_pjrt *plugin, const void *data, mix_type type, bool stay,
                                   pjrt_event **done);
/* Prepares bytes of the host for copies, which the device then reads by itself; they must be unpinned before
 * they are freed. False without an error: it cannot, and copies go on without. A plug-in that has pinning and
 * fails at it is told by a message, once, and not asked again. */
bool mix_pjrt_pin(const mix_pjrt *plugin, void *data, size_t bytes);
void mix_pjrt_unpin(const mix_pjrt *plugin, void *data);
/* The bytes are copied before it returns. */
pjrt_buffer *mix_pjrt_upload(const mix_pjrt *plugin, const void *data, mix_type type);
/* Waits for the buffer and copies all of its bytes. */
bool mix_pjrt_download(const mix_pjrt *plugin, pjrt_buffer *buffer, mix_type type, void *data);
/* One run. The arguments whose numbers are not in `keep` may be donated, as the program says; each argument
 * is still the caller's to free. Fills the results. `done` is the event of its end, or NULL. */
typedef struct mix_pjrt_run {
  pjrt_loaded *loaded;
  pjrt_buffer **arguments;
  int argument_count;
  const int64_t *keep;
  int keep_count;
  pjrt_buffer **results;
} mix_pjrt_run;
bool mix_pjrt_execute(const mix_pjrt *plugin, const mix_pjrt_run *run, const char *name, pjrt_event **done);
