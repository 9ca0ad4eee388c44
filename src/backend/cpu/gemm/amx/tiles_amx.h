/* The configuration of tile registers that all products by tiles use: eight of 16 rows of 64 bytes. */
#pragma once

#include <immintrin.h>
#include <stdint.h>

/* The compiler does not know which memory tile loads read. */
#define TILE_BARRIER() __asm__ volatile("" ::: "memory")

static inline void configure_tiles(void) {
  /* Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, LDTILECFG. */
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } configuration __attribute__((aligned(64))) = {.palette = 1};
  for (int i = 0; i < 8; i++) configuration.row_bytes[i] = 64, configuration.rows[i] = 16;
  TILE_BARRIER();
  _tile_loadconfig(&configuration);
}
