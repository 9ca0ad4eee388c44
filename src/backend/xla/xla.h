/* Inside the backend "xla": programs that XLA compiles, run by a PJRT plug-in. */
#pragma once

#include "backend/xla/emit.h"
#include "backend/xla/pjrt.h"

/* ---- the plug-in of the process (plugin.c) ---- */

/* The plug-in to load when the device is first asked for (mix_backend.choose). */
bool mix_xla_choose(const char *path, const char *source);
/* The same for the GPU of the device "cuda" (mix_set_device("cuda:1")). */
bool mix_cuda_choose(const char *number, const char *source);
/* The plug-in in use, or NULL. */
const mix_pjrt *mix_xla_plugin(void);
/* False with the error recorded: this is a child by fork, which must not take locks of the backend either. */
bool mix_xla_usable(void);
/* Loads the plug-in unless one is in use: the chosen one, else that of MIXTAPE_PJRT_PLUGIN, else the first
 * that is found by name. NULL: it is in use; else the reason why there is none, which lives as long as the
 * process. The latest library that failed is not tried again. */
const char *mix_xla_load(void);
/* The same for one that drives the GPU of the device "cuda". */
const char *mix_cuda_load(void);

/* ---- where plug-ins are searched (search.c) ---- */

/* Adds the paths of those that are there and the names to ask the loader for, a line each, in the order in
 * which they are tried. `cuda`: those for GPUs alone. Others leave these out where the driver has no GPU. */
void mix_xla_list_plugins(mix_text *list, bool cuda);
/* The places, for messages. */
const char *mix_xla_places(bool cuda);

/* ---- NVIDIA's GPUs (cuda.c) ---- */

enum { MIX_CUDA_GPUS = 64 };
typedef struct mix_cuda_gpu {
  char name[96];
  int major, minor; /* of its compute capability */
  int cores;        /* multiprocessors */
  size_t bytes;
} mix_cuda_gpu;
typedef struct mix_cuda_driver {
  char problem[320]; /* "": it drives the GPUs below */
  char release[32];  /* "580.65.06"; "": unknown */
  int version;       /* of CUDA: 13000 is 13.0 */
  int count;
  mix_cuda_gpu gpus[MIX_CUDA_GPUS];
} mix_cuda_driver;
/* The number of the GPU of the device "cuda". */
int mix_cuda_gpu_in_use(void);
void mix_cuda_use_gpu(int number);
/* Asks it once, without making a context on a GPU. */
const mix_cuda_driver *mix_cuda_ask_driver(void);
/* After that: does the plug-in suit driver and GPU, and does it have what it needs beside it? False with the
 * error recorded. */
bool mix_cuda_check(const char *plugin, int gpu);
/* How to get a plug-in that suits them: "run: pip install ...". */
const char *mix_cuda_remedy(int gpu);
/* The version of CUDA that a path of pip's names, such as 12; else the newest that has plug-ins. */
int mix_cuda_version_of(const char *plugin);
/* The folder of ptxas and libdevice that the check has found; "": none. */
const char *mix_cuda_toolkit(void);
/* Options of the client: the GPU, and how much of its memory is taken by MIXTAPE_DEVICE_MEMORY. Returns how
 * many they are; -1 with the error recorded. */
enum { MIX_CUDA_CLIENT_OPTIONS = 3 };
int mix_cuda_client_options(int gpu, pjrt_option options[MIX_CUDA_CLIENT_OPTIONS]);
/* Writes up to `capacity` facts, of the GPU in use first. Returns the number of GPUs. */
int mix_cuda_facts(mix_gpu_fact *facts, int capacity);
/* Facts of a GPU on which programs of the same key run (cache.c): a line. */
void mix_cuda_put_key(mix_text *key);
/* Adds a line for each GPU. */
void mix_cuda_describe(mix_text *text);

/* ---- a GPU that is not here (cuda_target.c) ---- */

/* The one that programs are compiled for (mix_cuda_set_target); NULL: one that is here runs them. Then the
 * driver is not asked, but has this one. */
const mix_cuda_gpu *mix_cuda_target(void);
/* Writes its facts for the compiler of a plug-in for this version of CUDA. */
void mix_cuda_write_target(mix_text *text, int cuda);

/* ---- memory (memory.c, block.c) ---- */

extern const mix_memory_device mix_xla_memory;
/* The memory that a handle is a part of, or itself. */
mix_memory *mix_xla_whole(mix_memory *memory);
/* A copy to the device that has begun. */
typedef struct mix_xla_upload {
  pjrt_event *done;   /* NULL: it is done */
  mix_memory *memory; /* whose bytes it reads until then: retained; NULL: it has read them */
  size_t bytes;
  int parameter; /* of the program */
} mix_xla_upload;
/* Copies of fewer bytes are neither pinned nor narrowed: they take as long as the call. */
enum { MIX_XLA_LARGE_COPY = 1 << 16 };
/* The bytes, also of the host's memory, as an argument of this type. `own`: the caller frees it. A copy that
 * is then not done yet is `upload`; NULL: it waits. NULL with the error recorded. */
pjrt_buffer *mix_xla_buffer(mix_memory *memory, mix_type type, bool *own, mix_xla_upload *upload);
/* May a run take the buffer for the new value? Not while somebody else holds or maps the memory. */
bool mix_xla_may_donate(mix_memory *memory);
/* The value of the memory is that of the buffer, which it owns from now on. */
void mix_xla_give_buffer(mix_memory *memory, pjrt_buffer *buffer, mix_type type);
/* The reverse: the buffer is the caller's, and the memory must be given another one. */
pjrt_buffer *mix_xla_take_buffer(mix_memory *memory, mix_type *type);
/* Copies the value of another memory, as large or larger. False with the error recorded. */
bool mix_xla_copy_value(mix_memory *to, mix_memory *from);
/* So many of the references to the memory are those of kept values. */
void mix_xla_count_kept(mix_memory *memory, int more);

/* ---- compiled programs on disk (cache.c) ---- */

/* Compiles, or loads what was compiled before. `name`: of the function, for errors. NULL with the error
 * recorded. */
pjrt_loaded *mix_xla_compile_text(const char *text, const char *name);
/* Compiles for the GPU that is not here, unless the program is kept already. False with the error recorded,
 * also where it cannot be kept. */
bool mix_xla_compile_for_target(const char *text, const char *name);
void mix_xla_describe_cache(mix_text *text);
/* Holds the release of NVIDIA's driver. Tests name another file. */
extern const char *mix_xla_driver_file;

/* ---- compilations that take long (watch.c) ---- */

typedef struct mix_xla_watch mix_xla_watch;
/* Until its end, messages say after these seconds, and each time after twice as many, how long it takes.
 * NULL with the error recorded. */
extern double mix_xla_patience;
mix_xla_watch *mix_xla_watch_begin(const char *name);
void mix_xla_watch_end(mix_xla_watch *watch);

/* ---- programs (executable.c) ---- */

typedef struct mix_xla_program mix_xla_program;
/* NULL with the error recorded. The program reads the graph as long as it lives. */
mix_xla_program *mix_xla_program_new(mix_ir *ir);
void mix_xla_program_free(mix_xla_program *program);
mix_ticket mix_xla_program_enqueue(mix_xla_program *program, const mix_bindings *bindings);

/* ---- executables: a program or two of a graph (narrow.c) ---- */

mix_executable *mix_xla_compile(mix_ir *ir, const mix_context *context);
void mix_xla_destroy(mix_executable *executable);
mix_ticket mix_xla_enqueue(mix_executable *executable, const mix_bindings *bindings);

/* ---- values that runs replaced (kept.c) ---- */

typedef struct mix_xla_run mix_xla_run;
/* Of a variable, before a run. */
typedef struct mix_xla_kept {
  mix_memory *memory;  /* that the variable has after the run: retained */
  mix_memory *former;  /* that has the value: retained; NULL: `buffer` is it */
  pjrt_buffer *buffer; /* of this type */
  mix_type type;
} mix_xla_kept;
/* The run has given the variable another memory, or takes the place of the value in it: the buffer is then
 * no longer the memory's. */
void mix_xla_keep_former(mix_xla_run *run, mix_memory *memory, mix_memory *former);
void mix_xla_keep_buffer(mix_xla_run *run, mix_memory *memory);
/* The run's copies are good, and those of all runs before it. */
void mix_xla_drop_kept(mix_xla_run *run);
/* A copy for the run has failed: variables have the values from before it, whatever later runs wrote. Errors
 * are recorded. */
void mix_xla_restore_kept(mix_xla_run *run);

/* ---- runs, in the order in which they began (runs.c) ---- */

/* One that has begun. */
struct mix_xla_run {
  struct mix_xla_run *next;
  mix_ticket ticket;
  const mix_xla_signature *signature; /* of its executable, which outlives it */
  const char *name;                   /* of the function */
  struct mix_xla_run **spare;         /* where the executable finds it again when it is over */
  pjrt_event *done;
  pjrt_buffer *word; /* the error word after it; NULL: it has none */
  size_t bytes;      /* of arguments that were copied for it */
  size_t kept_bytes; /* of values that it keeps now */
  int upload_count, kept_count;
  mix_xla_kept *kept;       /* room for as many as there are parameters, as of: */
  mix_xla_upload uploads[]; /* after which it lies */
};

/* A run of the executable, used before or new. NULL with the error recorded. */
mix_xla_run *mix_xla_run_take(const mix_xla_signature *signature, const char *name, mix_xla_run **spare);
/* Of a run that has not begun: waits for its copies. */
void mix_xla_run_drop(mix_xla_run *run);
void mix_xla_runs_free(mix_xla_run **spare);
/* Between these two, no other thread begins a run. */
void mix_xla_runs_lock(void);
void mix_xla_runs_unlock(void);
/* With the lock: the error word that the next run reads. NULL with the error recorded. */
pjrt_buffer *mix_xla_error_word(void);
/* Runs wait for copies, and for earlier runs, rather than keep or copy more. Tests set less. */
extern size_t mix_xla_waiting_bytes;
/* With the lock: must the run, which writes so many bytes of variables, keep their former values, because a
 * copy may still fail, its own or one before it? 0 or 1; -1 with the error of a copy recorded. */
int mix_xla_runs_must_keep(mix_xla_run *run, size_t bytes);
/* With the lock: the run has begun. Returns its ticket. */
mix_ticket mix_xla_runs_append(mix_xla_run *run);
/* With the lock: forgets runs that are over, and waits for the oldest ones while there are too many, or the
 * arguments that were copied for them take too much of the device's memory. What they met is reported by the
 * next wait. */
void mix_xla_runs_trim(void);
/* Waits for the runs of an executable. What they met is reported by the next wait. */
void mix_xla_runs_finish(const mix_xla_signature *signature);
mix_status mix_xla_wait(mix_ticket ticket);
/* Would mix_xla_wait return at once? */
bool mix_xla_is_over(mix_ticket ticket);
