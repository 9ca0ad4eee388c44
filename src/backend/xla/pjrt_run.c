/* Programs and buffers of a PJRT plug-in: compiling, copying, running. */
#include "backend/xla/xla.h"

#include "base/error.h"
#include <mixtape/device.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- compile options: protobuf by hand ---- */

static size_t put(char *to, size_t at, const char *bytes, size_t size) {
  memcpy(to + at, bytes, size);
  return at + size;
}

/* A field that is bytes: its key, their number and they themselves. */
static size_t put_field(char *to, size_t at, char key, const char *bytes, size_t size) {
  to[at++] = key;
  if (size > 127) to[at++] = (char)(size | 0x80);
  to[at++] = (char)(size > 127 ? size >> 7 : size);
  return put(to, at, bytes, size);
}

/* An entry of env_option_overrides (field 7): the option (field 1) has a value (field 2). */
static size_t put_option(char *to, size_t at, const char *option, const char *value, size_t value_size) {
  char entry[MIX_PJRT_OPTIONS];
  size_t size = put_field(entry, 0, 0x0a, option, strlen(option));
  size = put_field(entry, size, 0x12, value, value_size);
  return put_field(to, at, 0x3a, entry, size);
}

static size_t put_bool(char *to, size_t at, const char *option, bool value) {
  return put_option(to, at, option, value ? "\x10\1" : "\x10\0", 2);
}

static size_t put_text(char *to, size_t at, const char *option, const char *text) {
  char value[MIX_PJRT_OPTIONS / 2];
  const size_t length = strlen(text);
  if (!length || length > sizeof value - 3) return at;
  return put_option(to, at, option, value, put_field(value, 0, 0x0a, text, length));
}

size_t mix_pjrt_options_of_program(const char *platform, char options[MIX_PJRT_OPTIONS]) {
  /* executable_build_options (3): device_ordinal (1) -1, num_replicas (4) 1, num_partitions (5) 1 */
  static const char build[] = "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01";
  size_t size = put(options, 0, build, sizeof build - 1);
  /* 16-bit values that XLA keeps in float32 lose bits that Keras's steps have. */
  size = put_bool(options, size, "xla_allow_excess_precision", false);
  /* Its products keep packed copies of weights, which are stale once a run has replaced donated weights. */
  if (!strcmp(platform, "cpu")) size = put_bool(options, size, "xla_cpu_use_xnnpack", false);
  /* Else a maximum with NaN may be the other number. */
  if (!strcmp(platform, "cpu")) size = put_bool(options, size, "xla_cpu_enable_fast_min_max", false);
  /* Without a device to time kernels on, deterministic compilation fails while Triton's are on. */
  if (!strcmp(platform, "cuda") && mix_deterministic()) {
    size = put_bool(options, size, "xla_gpu_deterministic_ops", true);
    size = put_bool(options, size, "xla_gpu_exclude_nondeterministic_ops", true);
    size = put_bool(options, size, "xla_gpu_enable_triton_gemm", false);
  }
  return size;
}

/* CUDA's linker of 2026 knows no GPU before Turing; ptxas of CUDA 12 still does. */
static bool needs_ptxas(void) {
  const mix_cuda_driver *driver = mix_cuda_ask_driver();
  const mix_cuda_gpu *gpu = &driver->gpus[mix_cuda_gpu_in_use()];
  return driver->count && gpu->major > 0 && gpu->major * 10 + gpu->minor < 75;
}

size_t mix_pjrt_options(const char *platform, char options[MIX_PJRT_OPTIONS]) {
  size_t size = mix_pjrt_options_of_program(platform, options);
  if (strcmp(platform, "cuda")) return size;
  if (needs_ptxas())
    size = put_text(options, size, "xla_gpu_libnvjitlink_mode", "LIB_NV_JIT_LINK_MODE_DISABLED");
  return put_text(options, size, "xla_gpu_cuda_data_dir", mix_cuda_toolkit());
}

/* ---- programs ---- */

static pjrt_program program_of(const char *text, size_t size) {
  return (pjrt_program){.struct_size = sizeof(pjrt_program),
                        .code = text,
                        .code_size = size,
                        .format = "mlir",
                        .format_size = 4};
}

pjrt_loaded *mix_pjrt_compile(const mix_pjrt *plugin, const char *text, size_t size, const char *name) {
  char options[MIX_PJRT_OPTIONS], what[160];
  const pjrt_program program = program_of(text, size);
  pjrt_client_compile_args args = {.client = plugin->client,
                                   .program = &program,
                                   .options = options,
                                   .options_size = mix_pjrt_options(plugin->platform, options)};
  snprintf(what, sizeof what, "xla: the plug-in cannot compile %s", name);
  return MIX_PJRT_CALL(plugin, PJRT_CLIENT_COMPILE, args, what) ? args.loaded : NULL;
}

pjrt_executable *mix_pjrt_compile_for_target(const mix_pjrt *plugin, const char *text, size_t size,
                                             const char *name) {
  char options[MIX_PJRT_OPTIONS], what[160];
  const pjrt_program program = program_of(text, size);
  pjrt_compile_args args = {.topology = plugin->topology,
                            .program = &program,
                            .options = options,
                            .options_size = mix_pjrt_options(plugin->platform, options)};
  snprintf(what, sizeof what, "xla: the plug-in cannot compile %s", name);
  return MIX_PJRT_CALL(plugin, PJRT_COMPILE, args, what) ? args.executable : NULL;
}

int mix_pjrt_result_count(const mix_pjrt *plugin, pjrt_loaded *loaded) {
  static const char what[] = "xla: counting the results of a program";
  pjrt_part_args part = {.object = loaded};
  if (!MIX_PJRT_CALL(plugin, PJRT_LOADED_GET_EXECUTABLE, part, what)) return -1;
  pjrt_num_outputs_args args = {.executable = part.part};
  const bool good = MIX_PJRT_CALL(plugin, PJRT_EXECUTABLE_NUM_OUTPUTS, args, what);
  mix_pjrt_destroy(plugin, PJRT_EXECUTABLE_DESTROY, part.part);
  return good ? (int)args.count : -1;
}

/* ---- buffers ---- */

static int type_of(mix_dtype dtype) {
  static const unsigned char types[MIX_DTYPE_COUNT] = {[MIX_FLOAT16] = PJRT_F16,
                                                       [MIX_BFLOAT16] = PJRT_BF16,
                                                       [MIX_FLOAT32] = PJRT_F32,
                                                       [MIX_FLOAT64] = PJRT_F64,
                                                       [MIX_INT8] = PJRT_S8,
                                                       [MIX_INT16] = PJRT_S16,
                                                       [MIX_INT32] = PJRT_S32,
                                                       [MIX_INT64] = PJRT_S64,
                                                       [MIX_UINT8] = PJRT_U8,
                                                       [MIX_BOOL] = PJRT_PRED,
                                                       [MIX_FLOAT8_E4M3FN] = PJRT_F8E4M3FN,
                                                       [MIX_FLOAT8_E5M2] = PJRT_F8E5M2};
  return types[dtype];
}

static const char uploading[] = "xla: copying to the device";

pjrt_buffer *mix_pjrt_begin_upload(const mix_pjrt *plugin, const void *data, mix_type type, bool stay,
                                   pjrt_event **done) {
  pjrt_buffer_from_host_args args = {.client = plugin->client,
                                     .data = data,
                                     .type = type_of(type.dtype),
                                     .dims = type.shape.dims,
                                     .rank = (size_t)type.shape.rank,
                                     .semantics = stay ? PJRT_IMMUTABLE_UNTIL_TRANSFER_COMPLETES
                                                       : PJRT_IMMUTABLE_ONLY_DURING_CALL,
                                     .device = plugin->devices[0]};
  *done = NULL;
  if (!MIX_PJRT_CALL(plugin, PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER, args, uploading)) return NULL;
  *done = args.done;
  return args.buffer;
}

bool mix_pjrt_pin(const mix_pjrt *plugin, void *data, size_t bytes) {
  static atomic_bool refused;
  pjrt_dma_map_args args = {.client = plugin->client, .data = data, .size = bytes};
  mix_error_aside pending;
  if (atomic_load_explicit(&refused, memory_order_relaxed)) return false;
  mix_error_set_aside(&pending);
  const bool good = MIX_PJRT_CALL(plugin, PJRT_CLIENT_DMA_MAP, args, "xla: pinning memory of the host");
  if (!good && !atomic_exchange(&refused, true) && mix_error() != MIX_UNSUPPORTED)
    mix_log_message(MIX_LOG_INFO, "%s; copies to the device go on without", mix_error_message());
  mix_error_clear();
  mix_error_put_back(&pending);
  return good;
}

void mix_pjrt_unpin(const mix_pjrt *plugin, void *data) {
  pjrt_dma_unmap_args args = {.client = plugin->client, .data = data};
  mix_error_aside pending;
  if (mix_pjrt_lost()) return;
  mix_error_set_aside(&pending);
  MIX_PJRT_CALL(plugin, PJRT_CLIENT_DMA_UNMAP, args, plugin->path);
  mix_error_clear();
  mix_error_put_back(&pending);
}

pjrt_buffer *mix_pjrt_upload(const mix_pjrt *plugin, const void *data, mix_type type) {
  pjrt_event *done;
  pjrt_buffer *buffer = mix_pjrt_begin_upload(plugin, data, type, false, &done);
  if (!buffer || mix_pjrt_await(plugin, done, uploading)) return buffer;
  mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, buffer);
  return NULL;
}

bool mix_pjrt_download(const mix_pjrt *plugin, pjrt_buffer *buffer, mix_type type, void *data) {
  static const char what[] = "xla: copying from the device";
  const int rank = type.shape.rank;
  int64_t order[MIX_MAX_RANK];
  for (int d = 0; d < rank; d++) order[d] = rank - 1 - d;
  pjrt_layout layout = {.struct_size = sizeof layout,
                        .tiled = {.struct_size = sizeof layout.tiled,
                                  .minor_to_major = order,
                                  .minor_to_major_size = (size_t)rank},
                        .kind = PJRT_LAYOUT_TILED};
  pjrt_buffer_to_host_args args = {.buffer = buffer,
                                   .layout = &layout,
                                   .data = data,
                                   .bytes = mix_dtype_size(type.dtype) * (size_t)mix_shape_size(type.shape)};
  return MIX_PJRT_CALL(plugin, PJRT_BUFFER_TO_HOST_BUFFER, args, what) &&
         mix_pjrt_await(plugin, args.done, what);
}

/* ---- runs ---- */

bool mix_pjrt_execute(const mix_pjrt *plugin, const mix_pjrt_run *run, const char *name, pjrt_event **done) {
  char what[160];
  pjrt_buffer *const *arguments = run->arguments;
  pjrt_buffer **results = run->results;
  pjrt_execute_options options = {
      .struct_size = sizeof options, .keep = run->keep, .keep_count = (size_t)run->keep_count};
  pjrt_execute_args args = {.loaded = run->loaded,
                            .options = &options,
                            .arguments = &arguments,
                            .device_count = 1,
                            .argument_count = (size_t)run->argument_count,
                            .results = &results,
                            .done = done};
  snprintf(what, sizeof what, "xla: running %s", name);
  *done = NULL;
  return MIX_PJRT_CALL(plugin, PJRT_LOADED_EXECUTE, args, what);
}
