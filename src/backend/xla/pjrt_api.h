/* The part of the PJRT C API that is in use: a plug-in exports one function, which returns a table of
 * functions, each of which takes one struct of arguments. Sizes and offsets are those of pjrt_c_api.h, major
 * version 0 (tests/backend/xla/test_pjrt_api.c compares them where that header is at hand). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one function: const pjrt_api *GetPjrtApi(void). */
#define PJRT_ENTRY "GetPjrtApi"
enum { PJRT_MAJOR = 0 };

typedef struct pjrt_error pjrt_error; /* NULL: success */
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_topology pjrt_topology; /* devices that need not be here */
typedef struct pjrt_device pjrt_device;
typedef struct pjrt_description pjrt_description;
typedef struct pjrt_buffer pjrt_buffer;
typedef struct pjrt_executable pjrt_executable; /* compiled */
typedef struct pjrt_loaded pjrt_loaded;         /* compiled and loaded into a client */
typedef struct pjrt_serialized pjrt_serialized;

/* The first members of every struct. */
#define PJRT_HEAD                                                                                            \
  size_t struct_size;                                                                                        \
  void *extensions

/* Places in the table of functions. */
typedef enum pjrt_call {
  PJRT_ERROR_DESTROY = 0,
  PJRT_ERROR_MESSAGE = 1,
  PJRT_ERROR_GET_CODE = 2,
  PJRT_PLUGIN_INITIALIZE = 3,
  PJRT_EVENT_DESTROY = 5,
  PJRT_EVENT_IS_READY = 6,
  PJRT_EVENT_ERROR = 7,
  PJRT_EVENT_AWAIT = 8,
  PJRT_CLIENT_CREATE = 10,
  PJRT_CLIENT_DESTROY = 11,
  PJRT_CLIENT_PLATFORM_NAME = 12,
  PJRT_CLIENT_PLATFORM_VERSION = 14,
  PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
  PJRT_CLIENT_COMPILE = 20,
  PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER = 22,
  PJRT_DESCRIPTION_KIND = 26,
  PJRT_DESCRIPTION_TO_STRING = 28,
  PJRT_DEVICE_GET_DESCRIPTION = 29,
  PJRT_DEVICE_MEMORY_STATS = 34,
  PJRT_EXECUTABLE_DESTROY = 40,
  PJRT_EXECUTABLE_NUM_OUTPUTS = 44,
  PJRT_EXECUTABLE_SERIALIZE = 49,
  PJRT_LOADED_DESTROY = 50,
  PJRT_LOADED_GET_EXECUTABLE = 51,
  PJRT_LOADED_EXECUTE = 55,
  PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD = 56,
  PJRT_BUFFER_DESTROY = 58,
  PJRT_BUFFER_TO_HOST_BUFFER = 70,
  PJRT_FUNCTIONS, /* in a table with all of these */
  /* Compiling for a device that is not here needs these. */
  PJRT_TOPOLOGY_CREATE = 82,
  PJRT_TOPOLOGY_DESTROY = 83,
  PJRT_TOPOLOGY_PLATFORM_NAME = 84,
  PJRT_COMPILE = 89,
  /* Not all plug-ins have these: memory of the host is prepared for copies. */
  PJRT_CLIENT_DMA_MAP = 110,
  PJRT_CLIENT_DMA_UNMAP = 111,
  PJRT_ALL_FUNCTIONS
} pjrt_call;

/* PJRT_ERROR_DESTROY and PJRT_ERROR_MESSAGE return nothing. */
typedef pjrt_error *pjrt_function(void *arguments);
typedef struct pjrt_api {
  PJRT_HEAD; /* struct_size: of the table, with its functions */
  struct {
    PJRT_HEAD;
    int major, minor;
  } version;
  pjrt_function *functions[];
} pjrt_api;

/* Element types of buffers. */
typedef enum pjrt_type {
  PJRT_PRED = 1,
  PJRT_S8 = 2,
  PJRT_S16 = 3,
  PJRT_S32 = 4,
  PJRT_S64 = 5,
  PJRT_U8 = 6,
  PJRT_F16 = 10,
  PJRT_F32 = 11,
  PJRT_F64 = 12,
  PJRT_BF16 = 13,
  PJRT_F8E5M2 = 16,
  PJRT_F8E4M3FN = 17,
} pjrt_type;

/* Codes of errors that mean something here. */
enum { PJRT_RESOURCE_EXHAUSTED = 8, PJRT_UNIMPLEMENTED = 12 };
/* The host's bytes are read before PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER returns; or until its event. */
enum { PJRT_IMMUTABLE_ONLY_DURING_CALL = 0, PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1 };
enum { PJRT_LAYOUT_TILED = 0 };

/* ---- arguments; those marked "out" are set by the plug-in ---- */

/* Of functions that take an object alone: destroying, waiting, PJRT_ERROR_DESTROY, PJRT_EVENT_ERROR. */
typedef struct pjrt_object_args {
  PJRT_HEAD;
  void *object;
} pjrt_object_args;

/* Of functions that give a text of an object, which lives as long as the object: PJRT_ERROR_MESSAGE,
 * PJRT_CLIENT_PLATFORM_NAME and _VERSION, PJRT_TOPOLOGY_PLATFORM_NAME, PJRT_DESCRIPTION_KIND and
 * _TO_STRING. */
typedef struct pjrt_text_args {
  PJRT_HEAD;
  const void *object;
  const char *text; /* out */
  size_t size;      /* out */
} pjrt_text_args;

/* Of functions that give an object of an object: PJRT_DEVICE_GET_DESCRIPTION, PJRT_LOADED_GET_EXECUTABLE. */
typedef struct pjrt_part_args {
  PJRT_HEAD;
  void *object;
  void *part; /* out */
} pjrt_part_args;

typedef struct pjrt_error_code_args {
  PJRT_HEAD;
  const pjrt_error *error;
  int code; /* out */
} pjrt_error_code_args;

typedef struct pjrt_is_ready_args {
  PJRT_HEAD;
  pjrt_event *event;
  bool is_ready; /* out */
} pjrt_is_ready_args;

typedef struct pjrt_initialize_args {
  PJRT_HEAD;
} pjrt_initialize_args;

/* An option of a plug-in's own. */
typedef enum pjrt_option_type {
  PJRT_OPTION_TEXT = 0,
  PJRT_OPTION_INT64S = 2,
  PJRT_OPTION_FLOAT = 3,
  PJRT_OPTION_BOOL = 4,
} pjrt_option_type;
typedef struct pjrt_option {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  int type; /* pjrt_option_type */
  union {
    const char *text;
    const int64_t *integers;
    float number;
    bool flag;
  } value;
  size_t value_size; /* the number of bytes or integers; else 1 */
} pjrt_option;

typedef struct pjrt_client_create_args {
  PJRT_HEAD;
  const pjrt_option *options;
  size_t option_count;
  void *key_value[4];  /* callbacks of several processes, unused */
  pjrt_client *client; /* out */
  void *key_value_try_get[2];
} pjrt_client_create_args;

typedef struct pjrt_devices_args {
  PJRT_HEAD;
  pjrt_client *client;
  pjrt_device *const *devices; /* out */
  size_t count;                /* out */
} pjrt_devices_args;

typedef struct pjrt_count {
  int64_t number;
  bool is_set;
} pjrt_count;

typedef struct pjrt_memory_stats_args {
  PJRT_HEAD;
  pjrt_device *device;
  int64_t used; /* out, as all */
  pjrt_count peak, allocations, largest;
  pjrt_count limit; /* of used */
  pjrt_count others[6];
} pjrt_memory_stats_args;

typedef struct pjrt_program {
  PJRT_HEAD;
  const char *code;
  size_t code_size;
  const char *format; /* "mlir" */
  size_t format_size;
} pjrt_program;

typedef struct pjrt_client_compile_args {
  PJRT_HEAD;
  pjrt_client *client;
  const pjrt_program *program;
  const char *options; /* a CompileOptionsProto */
  size_t options_size;
  pjrt_loaded *loaded; /* out */
} pjrt_client_compile_args;

typedef struct pjrt_topology_create_args {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  const pjrt_option *options;
  size_t option_count;
  pjrt_topology *topology; /* out */
} pjrt_topology_create_args;

typedef struct pjrt_compile_args {
  PJRT_HEAD;
  const pjrt_topology *topology;
  const pjrt_program *program;
  const char *options; /* a CompileOptionsProto */
  size_t options_size;
  pjrt_client *client;         /* NULL: none */
  pjrt_executable *executable; /* out */
} pjrt_compile_args;

/* The order of dimensions in memory: {rank - 1, ..., 0} is that of C. */
typedef struct pjrt_layout {
  PJRT_HEAD;
  struct {
    PJRT_HEAD;
    const int64_t *minor_to_major;
    size_t minor_to_major_size;
    const int64_t *tile_dims;
    const size_t *tile_dim_sizes;
    size_t tile_count;
  } tiled;
  int kind;
} pjrt_layout;

typedef struct pjrt_buffer_from_host_args {
  PJRT_HEAD;
  pjrt_client *client;
  const void *data;
  int type; /* pjrt_type */
  const int64_t *dims;
  size_t rank;
  const int64_t *byte_strides; /* NULL: dense */
  size_t byte_stride_count;
  int semantics;
  pjrt_device *device;
  void *memory;        /* NULL: the device's own */
  pjrt_layout *layout; /* NULL: chosen by the plug-in */
  pjrt_event *done;    /* out */
  pjrt_buffer *buffer; /* out */
} pjrt_buffer_from_host_args;

typedef struct pjrt_dma_map_args {
  PJRT_HEAD;
  pjrt_client *client;
  void *data;
  size_t size;
} pjrt_dma_map_args;

typedef struct pjrt_dma_unmap_args {
  PJRT_HEAD;
  pjrt_client *client;
  void *data;
} pjrt_dma_unmap_args;

typedef struct pjrt_buffer_to_host_args {
  PJRT_HEAD;
  pjrt_buffer *buffer;
  pjrt_layout *layout; /* NULL: as on the device */
  void *data;
  size_t bytes;
  pjrt_event *done; /* out */
} pjrt_buffer_to_host_args;

typedef struct pjrt_num_outputs_args {
  PJRT_HEAD;
  pjrt_executable *executable;
  size_t count; /* out */
} pjrt_num_outputs_args;

typedef struct pjrt_execute_options {
  PJRT_HEAD;
  void *callbacks[2];
  size_t callback_counts[2];
  int launch_id;
  const int64_t *keep; /* numbers of the arguments that are not donated in this run */
  size_t keep_count;
  void *context;
  const char *call_location;
  size_t task_count;
  void *tasks[2];
  void *later[8]; /* of newer versions: zero */
} pjrt_execute_options;

typedef struct pjrt_execute_args {
  PJRT_HEAD;
  pjrt_loaded *loaded;
  pjrt_execute_options *options;
  pjrt_buffer *const *const *arguments; /* [device][argument] */
  size_t device_count;
  size_t argument_count;
  pjrt_buffer **const *results; /* [device][result], filled by the plug-in */
  pjrt_event **done;            /* [device], filled by the plug-in */
  pjrt_device *device;          /* NULL: the one that it was compiled for */
} pjrt_execute_args;

typedef struct pjrt_serialize_args {
  PJRT_HEAD;
  const pjrt_executable *executable;
  const char *bytes;                        /* out; lives as long as `serialized` */
  size_t size;                              /* out */
  pjrt_serialized *serialized;              /* out */
  void (*destroy)(pjrt_serialized *object); /* out; called once */
} pjrt_serialize_args;

typedef struct pjrt_deserialize_args {
  PJRT_HEAD;
  pjrt_client *client;
  const char *bytes;
  size_t size;
  pjrt_loaded *loaded; /* out */
  const char *options; /* NULL: those of the program */
  size_t options_size;
} pjrt_deserialize_args;
