/* Places: the ranges of bytes that steps in bands access. A place that only these steps use, from its first
 * write on, needs no more memory than a band: it becomes a thread's own, and the arena's bytes are free for
 * what comes after. */
#pragma once

#include "backend/host/step_accesses.h"

enum { MIX_BAND_PLACES = 192, MIX_BAND_OPERANDS = 384 };

typedef struct mix_band_place {
  mix_range_access range; /* of the first access */
  bool written, own;
  bool closed; /* its bytes in the arena belong to a later value */
} mix_band_place;

/* An operand or result of a step of the group, and its place. */
typedef struct mix_band_operand {
  int member, operand, place;
} mix_band_operand;

typedef struct mix_band_places {
  mix_band_place list[MIX_BAND_PLACES];
  mix_band_operand operands[MIX_BAND_OPERANDS];
  int count, operand_count;
  size_t apart; /* bytes that the steps access by rows, each step by itself */
} mix_band_places;

/* Adds what the next member accesses. False, with nothing changed, if bands of the steps would not do what
 * the steps do one after another, or if there is no room. */
bool mix_band_places_add(mix_band_places *places, int member, const mix_access_set *step);
/* Makes a thread's own what no step but the members reads. `later`: the accesses of the steps that the group
 * leaves behind it; `end`: the first step after the group; `memory` is for the accesses of a step. */
void mix_band_places_own(mix_band_places *places, const mix_executable *executable,
                         const mix_access_set *later, int end, mix_access_set *memory);
/* Bytes that pass between memory and processor if all that a band accesses stays in the caches; those of one
 * row of the places. */
size_t mix_band_places_bytes(const mix_band_places *places);
size_t mix_band_row_bytes(const mix_band_places *places, int64_t rows);
