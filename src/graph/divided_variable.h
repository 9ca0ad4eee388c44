/* Variables whose value is divided among the ranks: each holds its share as a variable of its own. The whole
 * has a storage only after an assignment, or once it was gathered. */
#pragma once

#include "graph/division.h"
#include "graph/variable.h"
#include "tensor/shape.h"

typedef struct mix_variable_share {
  mix_object object;
  mix_division division;
  int rank, ranks;
  mix_variable *part;  /* this rank's rows; NULL: it has none; retained */
  mix_variable *clock; /* which every step writes that may change the parts, and nothing else; retained */
  uint64_t written_at; /* the version of the clock when the whole was written */
  bool gathered;       /* from the parts: it was not assigned */
  /* A weight of which captured functions read only this 16-bit form: every rank has it, as the copy that
   * plans keep (mix_variable_copy), which the whole is no longer needed for. NONE: a state. */
  mix_dtype narrow;
} mix_variable_share;

/* This rank keeps its rows of the value, and the whole loses its storage; with `narrow` once a copy was made
 * of it. False with the error recorded; then nothing has changed. */
bool mix_variable_divide(mix_variable *variable, mix_division division, int rank, int ranks,
                         mix_variable *clock, mix_dtype narrow);
static inline bool mix_variable_has_whole(const mix_variable *variable) {
  return mix_memory_bytes(variable->memory) == mix_value_bytes(variable->dtype, variable->shape);
}
/* May the variable be read in a capture, by what needs no whole? */
static inline bool mix_variable_has_narrow(const mix_variable *variable) {
  return variable->share && variable->share->narrow != MIX_DTYPE_NONE;
}
/* The variable is no longer divided, and holds the whole. */
void mix_variable_rejoin(mix_variable *variable);
/* Has the whole a value here that is no older than the parts? True of a variable that is not divided. */
bool mix_variable_is_here(const mix_variable *variable);
/* The same for a value that was assigned, and not gathered from the parts. */
bool mix_variable_was_assigned(const mix_variable *variable);
/* Like mix_variable_is_here, with an error that names the remedy. */
bool mix_variable_check_here(const mix_variable *variable, const char *call);
/* A run wrote these. Copies among them are current; other copies of the same weights are now stale. */
void mix_variables_note_write(int count, mix_variable *const *written);
/* A run that might have written these has failed: nothing that is made of them counts as current. */
void mix_variables_note_failure(int count, mix_variable *const *written);
/* Gives the whole a storage if it has none. False with the error recorded. */
bool mix_variable_make_room(mix_variable *variable);
/* The whole was assigned: the part becomes this rank's rows of it. False with the error recorded. */
bool mix_variable_update_part(mix_variable *variable);
/* Replaces the whole by `memory`, what was gathered from the parts, which nothing else will read: it becomes
 * the storage, so that a large weight is not there twice. False with the error recorded. */
bool mix_variable_set_gathered(mix_variable *variable, mix_memory *memory);
/* The whole loses its storage. False with the error recorded. */
bool mix_variable_drop_whole(mix_variable *variable);
