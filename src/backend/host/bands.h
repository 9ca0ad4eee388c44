/* Bands: consecutive steps that run together, some rows at a time, so that what one step leaves in the caches
 * is there for the next. */
#pragma once

#include "backend/host/executor.h"

/* An operand or result of member i of the steps in memory of the thread: `row` bytes for each row of a band.
 */
typedef struct mix_own_operand {
  int member, operand; /* inputs, then outputs */
  size_t offset, row;
} mix_own_operand;

/* Steps in bands: order[begin] to order[end - 1] of the executable. */
struct mix_host_bands {
  int begin, end;
  int64_t rows, band; /* of the steps; of a band, at most */
  int sharer;         /* the step whose kernel divides the rows among the threads; -1: none */
  mix_own_operand *own;
  int own_count;
  size_t own_bytes;    /* of a thread */
  size_t cached_bytes; /* that do not pass between memory and processor, because they are in the caches */
};

/* Finds the steps of a plan, whose kernels have been chosen, that run in bands, and the order in which all
 * steps run. False: out of memory, recorded. */
bool mix_host_form_bands(mix_executable *executable);
void mix_host_free_bands(mix_executable *executable);
/* Runs this thread's rows. */
void mix_host_run_bands(mix_executable *executable, const mix_host_bands *bands, const mix_team *team);
/* For tests: whether plans that are compiled from now on run in bands. ALWAYS: in bands of three rows,
 * whatever the caches. */
typedef enum mix_host_band_rule { MIX_BANDS_BY_SIZE, MIX_BANDS_NEVER, MIX_BANDS_ALWAYS } mix_host_band_rule;
void mix_host_set_band_rule(mix_host_band_rule rule);
