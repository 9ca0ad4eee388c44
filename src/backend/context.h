/* What a plan is compiled for: a device, threads, how products are summed, and what memory may buy. A plan
 * keeps the context that it was compiled with; the setters of mixtape/device.h change the default one. */
#pragma once

#include <stdint.h>

typedef enum mix_accumulation {
  MIX_ACCUMULATE_AUTO,
  MIX_ACCUMULATE_EXACT,
  MIX_ACCUMULATE_BLOCKED,
} mix_accumulation;
typedef enum mix_float32_precision { MIX_FLOAT32_HIGHEST, MIX_FLOAT32_HIGH } mix_float32_precision;

/* Zero: the default settings. */
typedef struct mix_matmul_precision {
  mix_accumulation accumulation;
  mix_float32_precision float32;
} mix_matmul_precision;

typedef enum mix_memory_use { MIX_MEMORY_AUTO, MIX_MEMORY_FAST, MIX_MEMORY_LEAST } mix_memory_use;

typedef struct mix_context {
  const struct mix_backend *backend;
  int threads; /* at most; 0: the device has none */
  mix_matmul_precision precision;
  mix_memory_use memory;
  struct mix_communicator *communicator; /* with the other processes; NULL: there is one */
} mix_context;

/* The context in force (mix_set_device, mix_set_threads, ...). */
mix_context mix_context_default(void);
/* Another context for this device. */
mix_context mix_context_on(const struct mix_backend *backend, const mix_context *context);
/* Differs for different contexts and instruction-set caps. Part of the key of compiled plans. */
uint64_t mix_context_key(const mix_context *context);

/* The default settings, from calls or the environment. A bad value of the environment is recorded as an
 * error of each use until a call replaces it. */
mix_matmul_precision mix_matmul_precision_default(void);
mix_memory_use mix_memory_use_default(void);
/* The accumulation that a setting means on this processor: never `auto`. */
mix_accumulation mix_accumulation_resolve(mix_accumulation setting);
const char *mix_accumulation_name(mix_accumulation accumulation);
const char *mix_float32_precision_text(mix_float32_precision precision);
