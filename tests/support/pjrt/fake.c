/* Small PJRT plug-ins for the tests of bad input, a library for each FAKE: what a user may give instead of a
 * plug-in, and plug-ins that fail. Those that connect have one device, buffers in memory of the host, and
 * programs whose results are zeros of one float32. */
#include "element_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* no_entry: a library that is none; no_table, old, new: its table is of no use; refuses_to_start; no_devices;
 * exhausted_client: has no memory for one; tpu, cuda: say so; refuses: compiles nothing; exhausted: has no
 * memory; exhausted_run: its runs have none; fails: they fail; donates: its programs have two results, and
 * its runs fail if no argument is donated; pairs: two results; keeps: says "cuda", gives zeros of the types
 * that its programs return, serializes these, compiles for GPUs that are not here, and compiles once the file
 * of MIXTAPE_FAKE_WAITS is there, or not at all if MIXTAPE_FAKE_REFUSES is set; it has no memory for what
 * MIXTAPE_FAKE_EXHAUSTED says, a client, compile, upload or run; works */
#define IS(name) (!strcmp(FAKE, name))
#define RESULTS (IS("donates") || IS("pairs") || IS("exhausted_run") ? 2 : 1)

struct pjrt_error {
  int code;
  char text[96];
};

static pjrt_error *error_of(int code, const char *text) {
  pjrt_error *error = calloc(1, sizeof *error);
  error->code = code;
  strncpy(error->text, text, sizeof error->text - 1);
  return error;
}

static pjrt_error *destroy_error(void *arguments) {
  free(((pjrt_object_args *)arguments)->object);
  return NULL;
}
static pjrt_error *error_message(void *arguments) {
  pjrt_text_args *args = arguments;
  args->text = ((const pjrt_error *)args->object)->text;
  args->size = strlen(args->text);
  return NULL;
}
static pjrt_error *error_code(void *arguments) {
  pjrt_error_code_args *args = arguments;
  args->code = args->error->code;
  return NULL;
}

static bool is_exhausted(const char *call) {
  const char *which = IS("keeps") ? getenv("MIXTAPE_FAKE_EXHAUSTED") : NULL;
  return which && !strcmp(which, call);
}
static pjrt_error *exhausted(void) {
  return error_of(PJRT_RESOURCE_EXHAUSTED, "Out of memory while trying to allocate 4294967296 bytes.");
}

/* A struct that is shorter than it was when the plug-in was built, as plug-ins check it. */
static pjrt_error *check_size(const void *arguments, size_t needed) {
  return *(const size_t *)arguments >= needed ? NULL : error_of(3, "Unexpected size of the arguments");
}

static pjrt_error *initialize(void *arguments) {
  return IS("refuses_to_start") ? error_of(9, "the fake does not start") : check_size(arguments, 16);
}

static int objects; /* clients, topologies: their addresses are of no use */
static pjrt_device *device;
/* Of cuda: what the options of its client say. */
static char given[100];
static pjrt_error *read_options(const pjrt_client_create_args *args) {
  int64_t gpu = -1;
  double share = 0;
  bool at_once = true;
  for (size_t i = 0; i < args->option_count; i++) {
    const pjrt_option *option = &args->options[i];
    if (option->struct_size < sizeof *option || option->name_size != strlen(option->name))
      return error_of(3, "an option of another size");
    if (!strcmp(option->name, "visible_devices") && option->type == PJRT_OPTION_INT64S)
      gpu = option->value.integers[0];
    else if (!strcmp(option->name, "memory_fraction") && option->type == PJRT_OPTION_FLOAT)
      share = (double)option->value.number;
    else if (!strcmp(option->name, "preallocate") && option->type == PJRT_OPTION_BOOL)
      at_once = option->value.flag;
    else
      return error_of(3, "an unknown option");
  }
  const char *gpus = getenv("FAKE_GPUS");
  for (int64_t i = 0; gpus && i < gpu && (gpus = strchr(gpus, ',')); i++) gpus++;
  if (args->option_count && !gpus) return error_of(9, "No visible GPU devices.");
  snprintf(given, sizeof given, "GPU %d, %.3f of its memory%s", (int)gpu, share, at_once ? " at once" : "");
  return NULL;
}

static pjrt_error *create_client(void *arguments) {
  pjrt_client_create_args *args = arguments;
  pjrt_error *error = IS("cuda") || IS("keeps") ? read_options(args) : NULL;
  if (error) return error;
  if (is_exhausted("client")) return exhausted();
  if (IS("exhausted_client")) return error_of(PJRT_RESOURCE_EXHAUSTED, "no room for a client");
  args->client = (pjrt_client *)&objects;
  device = (pjrt_device *)&objects;
  return check_size(arguments, sizeof *args);
}
static pjrt_error *nothing(void *arguments) { return check_size(arguments, sizeof(pjrt_object_args)); }
static pjrt_error *is_ready(void *arguments) {
  ((pjrt_is_ready_args *)arguments)->is_ready = true;
  return check_size(arguments, sizeof(pjrt_is_ready_args));
}
static pjrt_error *devices(void *arguments) {
  pjrt_devices_args *args = arguments;
  args->devices = &device;
  args->count = IS("no_devices") ? 0 : 1;
  return NULL;
}
static pjrt_error *name(void *arguments) {
  pjrt_text_args *args = arguments;
  args->text = IS("tpu") || IS("cuda") ? FAKE : IS("keeps") ? "cuda" : "fake";
  args->size = strlen(args->text);
  return NULL;
}
static pjrt_error *describe_device(void *arguments) {
  pjrt_text_args *args = arguments;
  args->text = *given ? given : "fake";
  args->size = strlen(args->text);
  return NULL;
}
static pjrt_error *part(void *arguments) {
  ((pjrt_part_args *)arguments)->part = &objects;
  return NULL;
}
static pjrt_error *describe_topology(void *arguments) {
  pjrt_topology_create_args *args = arguments;
  for (size_t i = 0; i < args->option_count; i++) {
    const pjrt_option *option = &args->options[i];
    const char *needed = i ? "1x1x1" : "core_count:";
    if (option->type != PJRT_OPTION_TEXT || option->value_size != strlen(option->value.text) ||
        strcmp(option->name, i ? "topology" : "target_config") || !strstr(option->value.text, needed))
      return error_of(3, "no facts of a device");
  }
  if (!IS("keeps") || args->option_count != 2) return error_of(9, "No visible GPU devices.");
  args->topology = (pjrt_topology *)&objects;
  return check_size(arguments, sizeof *args);
}

/* ---- buffers ---- */

struct pjrt_buffer {
  size_t bytes;
  char data[];
};

static pjrt_error *upload(void *arguments) {
  pjrt_buffer_from_host_args *args = arguments;
  if (is_exhausted("upload")) return exhausted();
  if (IS("exhausted")) return error_of(PJRT_RESOURCE_EXHAUSTED, "the fake has no memory");
  size_t bytes = size_of(args->type);
  for (size_t d = 0; d < args->rank; d++) bytes *= (size_t)args->dims[d];
  args->buffer = calloc(1, sizeof(pjrt_buffer) + bytes);
  args->buffer->bytes = bytes;
  memcpy(args->buffer->data, args->data, bytes);
  return NULL;
}
static pjrt_error *download(void *arguments) {
  pjrt_buffer_to_host_args *args = arguments;
  if (args->bytes < args->buffer->bytes) return error_of(3, "no room for the buffer");
  memcpy(args->data, args->buffer->data, args->buffer->bytes);
  return NULL;
}
static pjrt_error *destroy_buffer(void *arguments) {
  free(((pjrt_object_args *)arguments)->object);
  return NULL;
}

/* ---- programs ---- */

/* What a program and its serialized form are. */
typedef struct program {
  int64_t count;
  int64_t bytes[624]; /* of each result */
} program;

/* Of "2x3xf32>" */
static int64_t bytes_of(const char *type) {
  int64_t bytes = 1;
  char *end;
  for (; *type >= '0' && *type <= '9'; type = end + 1) bytes *= strtoll(type, &end, 10);
  const int bits = atoi(type + strcspn(type, "0123456789"));
  return bytes * (bits < 8 ? 1 : bits / 8);
}

/* From the types of the last return of its text. */
static void read_results(program *made, const pjrt_program *source) {
  static const char word[] = "\n    return ";
  char *text = calloc(1, source->code_size + 1), *at, *last = NULL;
  memcpy(text, source->code, source->code_size);
  for (at = text; (at = strstr(at, word)); at++) last = at;
  for (at = last; at && (at = strstr(at, "tensor<")) && made->count < 624;)
    made->bytes[made->count++] = bytes_of(at += 7);
  free(text);
}

static program *new_program(const pjrt_program *source) {
  program *made = calloc(1, sizeof *made);
  if (IS("keeps"))
    read_results(made, source);
  else
    for (made->count = 0; made->count < RESULTS;) made->bytes[made->count++] = 4;
  return made;
}

static pjrt_error *compile(void *arguments) {
  pjrt_client_compile_args *args = arguments;
  if (is_exhausted("compile")) return exhausted();
  if (IS("refuses") || (IS("keeps") && getenv("MIXTAPE_FAKE_REFUSES")))
    return error_of(PJRT_UNIMPLEMENTED, "the fake knows no op");
  for (const char *file = getenv("MIXTAPE_FAKE_WAITS"); IS("keeps") && file && access(file, F_OK);)
    usleep(1000);
  args->loaded = (pjrt_loaded *)new_program(args->program);
  return check_size(arguments, sizeof *args);
}
static pjrt_error *compile_for_topology(void *arguments) {
  pjrt_compile_args *args = arguments;
  if (args->client || args->topology != (pjrt_topology *)&objects) return error_of(3, "no topology");
  if (getenv("MIXTAPE_FAKE_REFUSES")) return error_of(PJRT_UNIMPLEMENTED, "the fake knows no op");
  args->executable = (pjrt_executable *)new_program(args->program);
  return check_size(arguments, sizeof *args);
}
static pjrt_error *destroy_program(void *arguments) {
  free(((pjrt_object_args *)arguments)->object);
  return NULL;
}
static pjrt_error *executable_of(void *arguments) {
  pjrt_part_args *args = arguments;
  args->part = malloc(sizeof(program));
  memcpy(args->part, args->object, sizeof(program));
  return NULL;
}
static void free_serialized(pjrt_serialized *object) { free(object); }
static pjrt_error *serialize(void *arguments) {
  pjrt_serialize_args *args = arguments;
  char *bytes = IS("keeps") ? malloc(sizeof(program)) : NULL;
  if (!bytes) return error_of(PJRT_UNIMPLEMENTED, "the fake does not serialize");
  memcpy(bytes, args->executable, sizeof(program));
  args->bytes = bytes;
  args->size = sizeof(program);
  args->serialized = (pjrt_serialized *)bytes;
  args->destroy = free_serialized;
  return check_size(arguments, sizeof *args);
}
static pjrt_error *deserialize(void *arguments) {
  pjrt_deserialize_args *args = arguments;
  program *loaded = malloc(sizeof *loaded);
  if (args->size != sizeof *loaded) return free(loaded), error_of(3, "no program of the fake");
  memcpy(loaded, args->bytes, sizeof *loaded);
  args->loaded = (pjrt_loaded *)loaded;
  return NULL;
}
static pjrt_error *count_results(void *arguments) {
  pjrt_num_outputs_args *args = arguments;
  args->count = (size_t)((const program *)(const void *)args->executable)->count;
  return NULL;
}
static pjrt_error *execute(void *arguments) {
  pjrt_execute_args *args = arguments;
  if (is_exhausted("run")) return exhausted();
  if (IS("fails")) return error_of(13, "the fake fails");
  if (IS("exhausted_run")) return error_of(13, "Error preparing: Out of memory allocating a run");
  if (IS("donates") && args->options->keep_count >= args->argument_count)
    return error_of(3, "nothing is donated");
  const program *running = (const void *)args->loaded;
  for (int r = 0; r < running->count; r++) {
    args->results[0][r] = calloc(1, sizeof(pjrt_buffer) + (size_t)running->bytes[r]);
    args->results[0][r]->bytes = (size_t)running->bytes[r];
  }
  return NULL;
}

#if !FAKE_WITHOUT_ENTRY
__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void) {
  static pjrt_function *const functions[PJRT_ALL_FUNCTIONS] = {[PJRT_ERROR_DESTROY] = destroy_error,
                                                               [PJRT_ERROR_MESSAGE] = error_message,
                                                               [PJRT_ERROR_GET_CODE] = error_code,
                                                               [PJRT_PLUGIN_INITIALIZE] = initialize,
                                                               [PJRT_EVENT_DESTROY] = nothing,
                                                               [PJRT_EVENT_IS_READY] = is_ready,
                                                               [PJRT_EVENT_ERROR] = nothing,
                                                               [PJRT_EVENT_AWAIT] = nothing,
                                                               [PJRT_CLIENT_CREATE] = create_client,
                                                               [PJRT_CLIENT_DESTROY] = nothing,
                                                               [PJRT_CLIENT_PLATFORM_NAME] = name,
                                                               [PJRT_CLIENT_PLATFORM_VERSION] = name,
                                                               [PJRT_CLIENT_ADDRESSABLE_DEVICES] = devices,
                                                               [PJRT_CLIENT_COMPILE] = compile,
                                                               [PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER] = upload,
                                                               [PJRT_DESCRIPTION_KIND] = name,
                                                               [PJRT_DESCRIPTION_TO_STRING] = describe_device,
                                                               [PJRT_DEVICE_GET_DESCRIPTION] = part,
                                                               [PJRT_EXECUTABLE_DESTROY] = destroy_program,
                                                               [PJRT_EXECUTABLE_NUM_OUTPUTS] = count_results,
                                                               [PJRT_EXECUTABLE_SERIALIZE] = serialize,
                                                               [PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD] =
                                                                   deserialize,
                                                               [PJRT_LOADED_DESTROY] = destroy_program,
                                                               [PJRT_LOADED_GET_EXECUTABLE] = executable_of,
                                                               [PJRT_LOADED_EXECUTE] = execute,
                                                               [PJRT_BUFFER_DESTROY] = destroy_buffer,
                                                               [PJRT_TOPOLOGY_CREATE] = describe_topology,
                                                               [PJRT_TOPOLOGY_DESTROY] = nothing,
                                                               [PJRT_TOPOLOGY_PLATFORM_NAME] = name,
                                                               [PJRT_COMPILE] = compile_for_topology,
                                                               [PJRT_BUFFER_TO_HOST_BUFFER] = download};
  static pjrt_api *table; /* for the life of the process, as a plug-in's own */
  if (IS("no_table") || (!table && !(table = calloc(1, sizeof *table + sizeof functions)))) return NULL;
  memcpy(table->functions, functions, sizeof functions);
  table->struct_size = IS("old") ? 400 : sizeof *table + sizeof functions;
  table->version.major = IS("new");
  table->version.minor = 7;
  return table;
}
#endif
