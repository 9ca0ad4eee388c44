/* Tile registers in memory: the functions of AMX that kernels call, as the instructions do what they do, here
 * on int8, in bf16_tiles_avx512.c on bfloat16 (Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2: LDTILECFG, TILELOADD, TILESTORED, TDPBSSD). What the processor would refuse, by #GP or #UD, ends
 * the test. */
#ifndef MIX_TESTS_SUPPORT_EMULATED_TILES_H
#define MIX_TESTS_SUPPORT_EMULATED_TILES_H

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMULATED_TILES = 8, EMULATED_ROWS = 16, EMULATED_BYTES = 64 };

static _Thread_local struct {
  bool configured;
  int rows[EMULATED_TILES], bytes[EMULATED_TILES];
  int8_t data[EMULATED_TILES][EMULATED_ROWS][EMULATED_BYTES];
} emulated_tiles;

static inline void emulated_need(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "a processor would refuse this: %s\n", what);
  abort();
}

static inline void emulated_need_tile(int tile) {
  emulated_need(emulated_tiles.configured, "no configuration of tiles");
  emulated_need(tile >= 0 && tile < EMULATED_TILES && emulated_tiles.rows[tile] && emulated_tiles.bytes[tile],
                "a tile that is not configured");
}

/* Palette 1: eight tiles; bytes 2 to 15, and what is behind the eight, must be zero. */
static inline void emulated_loadconfig(const void *configuration) {
  const uint8_t *from = configuration;
  memset(&emulated_tiles, 0, sizeof emulated_tiles);
  if (!from[0]) return;
  emulated_need(from[0] == 1, "an unknown palette");
  for (int i = 2; i < 16; i++) emulated_need(!from[i], "reserved bytes that are not 0");
  for (int i = 0; i < 16; i++) {
    uint16_t bytes;
    const int rows = from[48 + i];
    memcpy(&bytes, from + 16 + 2 * i, sizeof bytes);
    emulated_need(i < EMULATED_TILES || (!bytes && !rows), "more than eight tiles");
    emulated_need(bytes <= EMULATED_BYTES && rows <= EMULATED_ROWS, "a tile that is too large");
    emulated_need(!bytes == !rows, "a tile with rows or bytes alone");
    if (i < EMULATED_TILES) emulated_tiles.bytes[i] = bytes, emulated_tiles.rows[i] = rows;
  }
  emulated_tiles.configured = true;
}

static inline void emulated_release(void) { memset(&emulated_tiles, 0, sizeof emulated_tiles); }

static inline void emulated_zero(int tile) {
  emulated_need_tile(tile);
  memset(emulated_tiles.data[tile], 0, sizeof emulated_tiles.data[tile]);
}

/* Rows and bytes beyond the tile's become zero. */
static inline void emulated_load(int tile, const void *from, int64_t stride) {
  emulated_zero(tile);
  for (int i = 0; i < emulated_tiles.rows[tile]; i++)
    memcpy(emulated_tiles.data[tile][i], (const char *)from + i * stride, (size_t)emulated_tiles.bytes[tile]);
}

static inline void emulated_store(int tile, void *to, int64_t stride) {
  emulated_need_tile(tile);
  for (int i = 0; i < emulated_tiles.rows[tile]; i++)
    memcpy((char *)to + i * stride, emulated_tiles.data[tile][i], (size_t)emulated_tiles.bytes[tile]);
}

/* Can tile c add the product of tiles a and b? */
static inline void emulated_need_factors(int c, int a, int b) {
  emulated_need_tile(a), emulated_need_tile(b), emulated_need_tile(c);
  emulated_need(c != a && c != b && a != b, "a tile that stands twice");
  const int rows = emulated_tiles.rows[c], depth = emulated_tiles.bytes[a], columns = emulated_tiles.bytes[b];
  emulated_need(emulated_tiles.rows[a] == rows && columns == emulated_tiles.bytes[c] &&
                    emulated_tiles.rows[b] * 4 == depth && depth % 4 == 0 && columns % 4 == 0,
                "tiles that do not fit each other");
}

/* Sums wrap, as those of the instruction. */
static inline void emulated_multiply(int c, int a, int b) {
  emulated_need_factors(c, a, b);
  const int rows = emulated_tiles.rows[c], depth = emulated_tiles.bytes[a], columns = emulated_tiles.bytes[b];
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns / 4; j++) {
      int32_t sum;
      memcpy(&sum, &emulated_tiles.data[c][i][4 * j], sizeof sum);
      for (int k = 0; k < depth; k++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)(emulated_tiles.data[a][i][k] *
                                                   emulated_tiles.data[b][k / 4][4 * j + k % 4]));
      memcpy(&emulated_tiles.data[c][i][4 * j], &sum, sizeof sum);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig(configuration) emulated_loadconfig(configuration)
#define _tile_release() emulated_release()
#define _tile_zero(tile) emulated_zero(tile)
#define _tile_loadd(tile, from, stride) emulated_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_store(tile, to, stride)
#define _tile_dpbssd(c, a, b) emulated_multiply(c, a, b)

#endif
