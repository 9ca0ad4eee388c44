/* The plug-in of MIXTAPE_LATE_PJRT on a device whose copies of arguments, and whose runs, finish late: when
 * two more runs have begun, or somebody waits. The host's bytes must stay as they were until then, or the
 * process ends. The copy whose number MIXTAPE_LATE_FAILS says fails, and with it the runs that need its
 * buffer, and what they make; MIXTAPE_LATE_MEMORY is what is free, MIXTAPE_LATE_PLATFORM the name of the
 * platform, MIXTAPE_LATE_RUNS the number in place of two for runs. MIXTAPE_LATE_PINS "yes": it pins memory,
 * "fails": it fails to, "none": it has no such functions. late_count("awaits") and the like tell the calls;
 * "blocked" are those that waited for what was not over. */
#include "element_size.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int late_count(const char *what);
EXPORTED const pjrt_api *GetPjrtApi(void);

enum { LATER = 2 }; /* runs */

/* Of a copy, or of a run. */
typedef struct event {
  struct event *next;
  const char *from;
  char *was;
  size_t bytes;
  pjrt_event *run;   /* the plug-in's own; NULL: a copy */
  int begun, number; /* the runs before it, the copies up to it; 0: a run */
  int done, lost;    /* lost: a run that needed what had failed */
} event;

/* A buffer of a copy that fails, or of a run that needed such a one. */
typedef struct poisoned {
  struct poisoned *next;
  const pjrt_buffer *buffer;
} poisoned;

static const pjrt_api *real;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static event *events;
static poisoned *all_poisoned;
/* Memory that is pinned. */
typedef struct pinned {
  struct pinned *next;
  const char *data;
  size_t bytes;
} pinned;
static pinned *all_pinned;
static int pins, unpins, copies_of_pinned;
static size_t staying_bytes;
static int awaits, blocked, downloads, uploads, staying, runs;
static char failed[] = "the copy failed";

int late_count(const char *what) {
  pthread_mutex_lock(&lock);
  const int count = !strcmp(what, "awaits")      ? awaits
                    : !strcmp(what, "blocked")   ? blocked
                    : !strcmp(what, "downloads") ? downloads
                    : !strcmp(what, "uploads")   ? uploads
                    : !strcmp(what, "staying")   ? staying
                    : !strcmp(what, "pins")      ? pins
                    : !strcmp(what, "unpins")    ? unpins
                    : !strcmp(what, "pinned")    ? copies_of_pinned
                    : !strcmp(what, "kibibytes") ? (int)(staying_bytes >> 10)
                                                 : runs;
  pthread_mutex_unlock(&lock);
  return count;
}

static void count(int *counter) {
  pthread_mutex_lock(&lock);
  ++*counter;
  pthread_mutex_unlock(&lock);
}

/* With the lock. */
static event *event_of(const void *object) {
  event *e = events;
  while (e && e != object) e = e->next;
  return e;
}

static void add_event(event *e) {
  e->begun = runs;
  e->next = events;
  events = e;
}

static void poison(const pjrt_buffer *buffer) {
  poisoned *p = calloc(1, sizeof *p);
  *p = (poisoned){.next = all_poisoned, .buffer = buffer};
  all_poisoned = p;
}

static int is_poisoned(const pjrt_buffer *buffer) {
  const poisoned *p = all_poisoned;
  while (p && p->buffer != buffer) p = p->next;
  return p != NULL;
}

static int fails(int copy) {
  return getenv("MIXTAPE_LATE_FAILS") && atoi(getenv("MIXTAPE_LATE_FAILS")) == copy;
}

static void end(event *e) {
  pjrt_object_args args = {.struct_size = sizeof args, .object = e->run};
  if (e->run && !e->done) real->functions[PJRT_EVENT_AWAIT](&args);
  if (e->was && !e->done && memcmp(e->from, e->was, e->bytes)) {
    fprintf(stderr, "late: the host's bytes changed before their copy was done\n");
    abort();
  }
  e->done = 1;
}

static int is_due(const event *e) {
  const char *later = e->run ? getenv("MIXTAPE_LATE_RUNS") : NULL;
  return e->done || runs >= e->begun + (later ? atoi(later) : LATER);
}

static pjrt_error *error_of(const event *e) {
  pjrt_object_args args = {.struct_size = sizeof args, .object = e->run};
  if (e->run && !e->lost) return real->functions[PJRT_EVENT_ERROR](&args);
  return e->lost || fails(e->number) ? (pjrt_error *)failed : NULL;
}

static const pinned *pinned_at(const char *data) {
  const pinned *p = all_pinned;
  while (p && !(data >= p->data && data < p->data + p->bytes)) p = p->next;
  return p;
}

static pjrt_error *pin(void *arguments) {
  const pjrt_dma_map_args *args = arguments;
  if (!strcmp(getenv("MIXTAPE_LATE_PINS"), "fails")) return (pjrt_error *)failed;
  pinned *p = calloc(1, sizeof *p);
  pthread_mutex_lock(&lock);
  if (pinned_at(args->data)) abort(); /* twice */
  *p = (pinned){.next = all_pinned, .data = args->data, .bytes = args->size};
  all_pinned = p;
  pins++;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pjrt_error *unpin(void *arguments) {
  const pjrt_dma_unmap_args *args = arguments;
  pthread_mutex_lock(&lock);
  pinned **at = &all_pinned;
  while (*at && (*at)->data != args->data) at = &(*at)->next;
  pinned *p = *at;
  if (!p) abort();
  *at = p->next;
  free(p);
  unpins++;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static pjrt_error *upload(void *arguments) {
  pjrt_buffer_from_host_args *args = arguments;
  const int stays = args->semantics == PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES;
  args->semantics = PJRT_IMMUTABLE_ONLY_DURING_CALL;
  pjrt_error *error = real->functions[PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER](arguments);
  count(&uploads);
  if (error || !stays) return error;
  if (args->done) { /* of a copy that is done */
    pjrt_object_args done = {.struct_size = sizeof done, .object = args->done};
    real->functions[PJRT_EVENT_DESTROY](&done);
  }
  size_t bytes = size_of(args->type);
  for (size_t d = 0; d < args->rank; d++) bytes *= (size_t)args->dims[d];
  event *e = calloc(1, sizeof *e);
  *e = (event){.from = args->data, .was = malloc(bytes + 1), .bytes = bytes};
  memcpy(e->was, e->from, bytes);
  pthread_mutex_lock(&lock);
  e->number = ++staying;
  staying_bytes += bytes;
  copies_of_pinned += pinned_at(e->from) != NULL;
  add_event(e);
  if (fails(e->number)) poison(args->buffer);
  pthread_mutex_unlock(&lock);
  args->done = (pjrt_event *)e;
  return NULL;
}

static int result_count(pjrt_loaded *loaded) {
  pjrt_part_args part = {.struct_size = sizeof part, .object = loaded};
  pjrt_num_outputs_args args = {.struct_size = sizeof args};
  if (real->functions[PJRT_LOADED_GET_EXECUTABLE](&part)) abort();
  args.executable = part.part;
  if (real->functions[PJRT_EXECUTABLE_NUM_OUTPUTS](&args)) abort();
  pjrt_object_args object = {.struct_size = sizeof object, .object = part.part};
  real->functions[PJRT_EXECUTABLE_DESTROY](&object);
  return (int)args.count;
}

static pjrt_error *execute(void *arguments) {
  pjrt_execute_args *args = arguments;
  int lost = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < args->argument_count; i++) lost |= is_poisoned(args->arguments[0][i]);
  pthread_mutex_unlock(&lock);
  pjrt_error *error = real->functions[PJRT_LOADED_EXECUTE](arguments);
  pthread_mutex_lock(&lock);
  runs++;
  for (int r = 0; lost && r < result_count(args->loaded); r++) poison(args->results[0][r]);
  event *e = args->done && args->done[0] ? calloc(1, sizeof *e) : NULL;
  if (e) {
    e->run = args->done[0];
    e->lost = lost;
    add_event(e);
    args->done[0] = (pjrt_event *)e;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

static pjrt_error *is_ready(void *arguments) {
  pjrt_is_ready_args *args = arguments;
  pthread_mutex_lock(&lock);
  event *e = event_of(args->event);
  if (e && is_due(e)) end(e);
  if (e) args->is_ready = e->done;
  pthread_mutex_unlock(&lock);
  return e ? NULL : real->functions[PJRT_EVENT_IS_READY](arguments);
}

static pjrt_error *wait_for(void *arguments) {
  const pjrt_object_args *args = arguments;
  pthread_mutex_lock(&lock);
  event *e = event_of(args->object);
  awaits++;
  if (e && !is_due(e)) blocked++;
  if (e) end(e);
  pjrt_error *error = e ? error_of(e) : NULL;
  pthread_mutex_unlock(&lock);
  return e ? error : real->functions[PJRT_EVENT_AWAIT](arguments);
}

static pjrt_error *event_error(void *arguments) {
  const pjrt_object_args *args = arguments;
  pthread_mutex_lock(&lock);
  event *e = event_of(args->object);
  if (e && !e->done) abort(); /* as plug-ins do */
  pjrt_error *error = e ? error_of(e) : NULL;
  pthread_mutex_unlock(&lock);
  return e ? error : real->functions[PJRT_EVENT_ERROR](arguments);
}

static pjrt_error *destroy_event(void *arguments) {
  const pjrt_object_args *args = arguments;
  pthread_mutex_lock(&lock);
  event *e = event_of(args->object), **at = &events;
  while (e && *at != e) at = &(*at)->next;
  if (e) *at = e->next;
  pthread_mutex_unlock(&lock);
  if (!e) return real->functions[PJRT_EVENT_DESTROY](arguments);
  pjrt_object_args own = {.struct_size = sizeof own, .object = e->run};
  if (e->run) real->functions[PJRT_EVENT_DESTROY](&own);
  free(e->was);
  free(e);
  return NULL;
}

static pjrt_error *destroy_buffer(void *arguments) {
  const pjrt_object_args *args = arguments;
  pthread_mutex_lock(&lock);
  for (poisoned **at = &all_poisoned, *p; (p = *at);) {
    if (p->buffer == args->object)
      *at = p->next, free(p);
    else
      at = &p->next;
  }
  pthread_mutex_unlock(&lock);
  return real->functions[PJRT_BUFFER_DESTROY](arguments);
}

static pjrt_error *download(void *arguments) {
  const pjrt_buffer_to_host_args *args = arguments;
  count(&downloads);
  pthread_mutex_lock(&lock);
  const int lost = is_poisoned(args->buffer);
  pthread_mutex_unlock(&lock);
  if (lost) return (pjrt_error *)failed;
  return real->functions[PJRT_BUFFER_TO_HOST_BUFFER](arguments);
}

static pjrt_error *memory_stats(void *arguments) {
  pjrt_memory_stats_args *args = arguments;
  args->used = 1000;
  args->limit = (pjrt_count){1000 + atoll(getenv("MIXTAPE_LATE_MEMORY")), true};
  return NULL;
}

static pjrt_error *platform(void *arguments) {
  pjrt_text_args *args = arguments;
  args->text = getenv("MIXTAPE_LATE_PLATFORM");
  args->size = strlen(args->text);
  return NULL;
}

static pjrt_error *destroy_error(void *arguments) {
  const pjrt_object_args *args = arguments;
  return args->object == failed ? NULL : real->functions[PJRT_ERROR_DESTROY](arguments);
}
static pjrt_error *error_message(void *arguments) {
  pjrt_text_args *args = arguments;
  if (args->object != failed) return real->functions[PJRT_ERROR_MESSAGE](arguments);
  args->text = failed;
  args->size = sizeof failed - 1;
  return NULL;
}
static pjrt_error *error_code(void *arguments) {
  pjrt_error_code_args *args = arguments;
  if ((const char *)args->error != failed) return real->functions[PJRT_ERROR_GET_CODE](arguments);
  args->code = 13;
  return NULL;
}

const pjrt_api *GetPjrtApi(void) {
  static pjrt_api *table; /* for the life of the process, as a plug-in's own */
  void *library = dlopen(getenv("MIXTAPE_LATE_PJRT"), RTLD_NOW | RTLD_LOCAL);
  const pjrt_api *(*entry)(void) = NULL;
  if (library) *(void **)&entry = dlsym(library, PJRT_ENTRY);
  if (!entry) return NULL;
  real = entry();
  const size_t size = sizeof *table + PJRT_ALL_FUNCTIONS * sizeof *table->functions;
  table = calloc(1, real->struct_size + size);
  memcpy(table, real, real->struct_size);
  if (table->struct_size < size) table->struct_size = size;
  table->functions[PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER] = upload;
  table->functions[PJRT_EVENT_IS_READY] = is_ready;
  table->functions[PJRT_EVENT_AWAIT] = wait_for;
  table->functions[PJRT_EVENT_ERROR] = event_error;
  table->functions[PJRT_EVENT_DESTROY] = destroy_event;
  table->functions[PJRT_LOADED_EXECUTE] = execute;
  table->functions[PJRT_BUFFER_TO_HOST_BUFFER] = download;
  table->functions[PJRT_BUFFER_DESTROY] = destroy_buffer;
  if (getenv("MIXTAPE_LATE_PLATFORM")) table->functions[PJRT_CLIENT_PLATFORM_NAME] = platform;
  if (getenv("MIXTAPE_LATE_PINS")) {
    const bool has = strcmp(getenv("MIXTAPE_LATE_PINS"), "none") != 0;
    table->functions[PJRT_CLIENT_DMA_MAP] = has ? pin : NULL;
    table->functions[PJRT_CLIENT_DMA_UNMAP] = has ? unpin : NULL;
  }
  if (getenv("MIXTAPE_LATE_MEMORY")) table->functions[PJRT_DEVICE_MEMORY_STATS] = memory_stats;
  table->functions[PJRT_ERROR_DESTROY] = destroy_error;
  table->functions[PJRT_ERROR_MESSAGE] = error_message;
  table->functions[PJRT_ERROR_GET_CODE] = error_code;
  return table;
}
