/* The setting of mix_simulate_products. */
#pragma once

#include "ops/block_quantize.h"

typedef struct mix_simulation {
  mix_block_format format;
  bool stochastic;
  int64_t seed;
} mix_simulation;
/* The present one; format MIX_BLOCK_NONE: none. */
mix_simulation mix_simulation_now(void);
/* "mxfp8" */
const char *mix_block_format_name(mix_block_format format);
/* Is the layer of that path one of those that stay in 16 bits? */
bool mix_simulation_excepts(const char *path);
/* The counts of an operand of a layer, which live as long as the process. NULL: out of memory, recorded. */
mix_quantized_count *mix_simulation_counted(const char *layer, const char *operand);
/* Equal keys: the same products are simulated. */
uint64_t mix_simulation_key(void);
