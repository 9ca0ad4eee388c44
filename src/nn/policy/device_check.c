/* GPU compatibility check, logged once a process when a mixed policy is constructed
 * (docs/spec/mixed_precision.md, section 2). On a TPU it says what suits TPUs. */
#include "backend/backend.h"
#include "base/alloc.h"
#include "base/error.h"
#include "nn/policy/policy.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { GPU_CAPACITY = 64, LINE_SIZE = 160 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool checked;
static mix_gpu_provider gpu_provider;
static void *gpu_context;

void mix_device_check_provider(mix_gpu_provider provider, void *context) {
  pthread_mutex_lock(&lock);
  gpu_provider = provider;
  gpu_context = context;
  pthread_mutex_unlock(&lock);
}

void mix_device_check_reset(void) {
  pthread_mutex_lock(&lock);
  checked = false;
  pthread_mutex_unlock(&lock);
}

/* Tensor cores exist from compute capability 7.0. The pair compares lexicographically: 3.10 is below, 10.0
 * above. */
static bool supported(const mix_gpu_fact *gpu) { return gpu->has_capability && gpu->major >= 7; }

static void describe(const mix_gpu_fact *gpu, char *line) {
  const char *name = gpu->name ? gpu->name : "Unknown GPU";
  if (gpu->has_capability)
    snprintf(line, LINE_SIZE, "%.100s, compute capability %d.%d", name, gpu->major, gpu->minor);
  else
    snprintf(line, LINE_SIZE, "%.100s, no compute capability (probably not an Nvidia GPU)", name);
}

/* Appends one line for each GPU that is supported, or is not. Equal neighbours share a line with their
 * count. */
static void append_lines(char *text, size_t size, const mix_gpu_fact *gpus, int count, bool which) {
  char line[LINE_SIZE] = "", next[LINE_SIZE];
  int same = 0;
  for (int i = 0; i <= count; i++) {
    if (i < count && supported(&gpus[i]) != which) continue;
    if (i < count) describe(&gpus[i], next);
    if (i < count && same && !strcmp(line, next)) {
      same++;
      continue;
    }
    size_t used = strlen(text);
    if (same > 1)
      snprintf(text + used, size - used, "  %s (x%d)\n", line, same);
    else if (same)
      snprintf(text + used, size - used, "  %s\n", line);
    if (i < count) memcpy(line, next, LINE_SIZE);
    same = 1;
  }
}

static const char multi_worker[] =
    "In a job of several workers this looked at the local machine only; the other machines are not checked.";

static void report_supported(const mix_gpu_fact *gpus, int count) {
  char line[LINE_SIZE];
  describe(&gpus[0], line);
  if (count == 1)
    mix_log_message(
        MIX_LOG_INFO,
        "Mixed precision compatibility check (mixed_float16): OK\nYour GPU will likely run quickly with "
        "dtype policy mixed_float16 as it has compute capability of at least 7.0. Your GPU: %s",
        line);
  else
    mix_log_message(
        MIX_LOG_INFO,
        "Mixed precision compatibility check (mixed_float16): OK\nYour GPUs will likely run quickly with "
        "dtype policy mixed_float16 as they all have compute capability of at least 7.0");
}

static void report_slow(const mix_gpu_fact *gpus, int count, int good) {
  size_t size = (size_t)(count + 1) * (LINE_SIZE + 16);
  char *list = mix_alloc(size);
  if (!list) return;
  list[0] = 0;
  append_lines(list, size, gpus, count, true);
  append_lines(list, size, gpus, count, false);
  const char *what =
      good ? "Some of your GPUs may run slowly with dtype policy mixed_float16 because they do not all have "
             "compute capability of at least 7.0. Your GPUs:"
      : count == 1
          ? "Your GPU may run slowly with dtype policy mixed_float16 because it does not have compute "
            "capability of at least 7.0. Your GPU:"
          : "Your GPUs may run slowly with dtype policy mixed_float16 because they do not have compute "
            "capability of at least 7.0. Your GPUs:";
  mix_log_message(
      MIX_LOG_WARNING,
      "Mixed precision compatibility check (mixed_float16): WARNING\n%s\n%sSee "
      "https://developer.nvidia.com/cuda-gpus for a list of GPUs and their compute capabilities.\n%s",
      what, list, multi_worker);
  mix_free(list);
}

static int gpus_of_device(void *context, mix_gpu_fact *facts, int capacity) {
  const mix_backend *backend = mix_backend_current();
  (void)context;
  return backend->gpus ? backend->gpus(facts, capacity) : 0;
}

static bool is_on_tpu(void) {
  const mix_backend *backend = mix_backend_current();
  return backend->platform && !strcmp(backend->platform(), "tpu");
}

static void report_tpu(const char *policy_name) {
  if (!strcmp(policy_name, "mixed_bfloat16"))
    mix_log_message(
        MIX_LOG_INFO,
        "Mixed precision compatibility check (mixed_bfloat16): OK\nYour TPU will likely run quickly with "
        "dtype policy mixed_bfloat16, most quickly if batch size and units are multiples of 128");
  else
    mix_log_message(
        MIX_LOG_WARNING,
        "Mixed precision compatibility check (%s): WARNING\nYour TPU may run slowly with dtype policy %s, "
        "for TPUs multiply bfloat16 numbers and not float16. Use mixed_bfloat16, which needs no loss scale, "
        "with batch sizes and units that are multiples of 128",
        policy_name, policy_name);
}

void mix_device_check(const char *policy_name) {
  mix_gpu_fact gpus[GPU_CAPACITY];
  pthread_mutex_lock(&lock);
  bool first = !checked;
  checked = true;
  mix_gpu_provider provider = gpu_provider ? gpu_provider : gpus_of_device;
  void *context = gpu_context;
  pthread_mutex_unlock(&lock);
  if (first && is_on_tpu()) report_tpu(policy_name);
  if (!first || is_on_tpu() || strcmp(policy_name, "mixed_float16")) return;
  int count = provider(context, gpus, GPU_CAPACITY), good = 0;
  if (count > GPU_CAPACITY) count = GPU_CAPACITY;
  for (int i = 0; i < count; i++) good += supported(&gpus[i]);
  if (count <= 0)
    mix_log_message(
        MIX_LOG_WARNING,
        "Mixed precision compatibility check (mixed_float16): WARNING\nThe dtype policy mixed_float16 may "
        "run slowly because this machine does not have a GPU. Only Nvidia GPUs with compute capability of at "
        "least 7.0 run quickly with mixed_float16.\n%s",
        multi_worker);
  else if (good == count)
    report_supported(gpus, count);
  else
    report_slow(gpus, count, good);
}
