/* Simulation of narrow formats of hardware: what mxfp8, nvfp4 or float8 would do to the training of a mixed
 * model. It is a simulation: the operands of 16-bit products are rounded to the format, with its scales, and
 * back, and multiplied in 16 bits as before. Nothing becomes faster or smaller. */
#ifndef MIXTAPE_SIMULATE_H
#define MIXTAPE_SIMULATE_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_simulate_options {
  size_t size;
  /* mxfp8: blocks of 32 float8_e4m3fn with a power of two each (OCP MX 1.0). nvfp4: blocks of 16 numbers of
   * 4 bits with a scale of float8_e4m3fn each, and one of float32 (NVIDIA's NVFP4). float8-current: one scale
   * for a tensor, by its largest magnitude; float8_e4m3fn, and float8_e5m2 for gradients. NULL: none. */
  const char *format;
  bool stochastic_rounding;         /* of gradients; by Philox, from `seed` and the numbers themselves */
  uint64_t seed;                    /* below 2^63 */
  const char *const *except_layers; /* names or paths of layers that stay in 16 bits, ended by NULL */
} mix_simulate_options;
/* Sets what functions that are called later simulate, in the whole process, and begins to count anew. Of the
 * products of layers (Dense, EinsumDense, attention, recurrent layers, convolutions but depthwise ones) and
 * of their gradients, each operand is rounded in blocks along the axes that the product sums over.
 * Attention's own two products have the names of layers, "scores" and "combined" below the layer's. On
 * processors alone, not on the device xla. ValueError for another format. */
MIX_API mix_status mix_simulate_products_with(const mix_simulate_options *options);

#ifndef __cplusplus
/* mix_simulate_products(.format = "mxfp8") */
#define mix_simulate_products(...)                                                                           \
  mix_simulate_products_with(                                                                                \
      MIX_ARGUMENTS("mix_simulate_products", "format", #__VA_ARGS__, mix_simulate_options, __VA_ARGS__))
#endif

/* What became of the numbers of a layer since then. */
typedef struct mix_simulated_row {
  size_t size;
  const char *layer, *operand; /* operand: "input", "kernel" or "gradient" */
  int64_t numbers;             /* other than 0, in all products */
  int64_t saturated, flushed;  /* of these: beyond the largest number; rounded to 0 */
} mix_simulated_row;
MIX_API int mix_simulated_count(void);
/* Fills the first row_size bytes of `row`; pass sizeof(mix_simulated_row). ValueError if the index is out of
 * range. */
MIX_API mix_status mix_simulated_get(int index, mix_simulated_row *row, size_t row_size);

MIX_END_DECLARATIONS
#endif
