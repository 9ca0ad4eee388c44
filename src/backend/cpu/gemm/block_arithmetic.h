/* Arithmetic of blocks and shares. */
#pragma once

#include <stdint.h>

static inline int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
static inline int64_t round_up(int64_t x, int64_t unit) { return divide_up(x, unit) * unit; }
static inline int64_t whole_lines(int64_t bytes) { return round_up(bytes, 64); }
/* A block size of whole units, at most `max`, that makes blocks even: 784 rows are 416 and 368, not 512 and
 * 272. */
static inline int64_t even_block(int64_t count, int64_t max, int64_t unit) {
  return count ? round_up(divide_up(count, divide_up(count, max)), unit) : unit;
}
