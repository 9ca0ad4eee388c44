#include "graph/divided_variable.h"

#include "tensor/shape.h"

static size_t bytes_of(const mix_variable *variable) {
  return mix_value_bytes(variable->dtype, variable->shape);
}

/* Takes the memory; NULL: it could not be made. */
static bool set_storage(mix_variable *variable, mix_memory *memory) {
  if (!memory || !mix_variable_before_write(variable)) return mix_release(memory), false;
  mix_variable_replace(variable, memory);
  variable->in_file = false;
  return true;
}

bool mix_variable_drop_whole(mix_variable *variable) {
  if (!mix_memory_bytes(variable->memory)) return true;
  return set_storage(variable, mix_memory_new(&mix_host_memory, 0));
}

bool mix_variable_make_room(mix_variable *variable) {
  if (mix_variable_has_whole(variable)) return true;
  return set_storage(variable, mix_memory_new(&mix_host_memory, bytes_of(variable)));
}

/* ---- parts ---- */

/* Takes the memory. */
static mix_variable *part_of(const mix_variable *variable, mix_shape shape, mix_memory *memory) {
  mix_variable *part = memory ? mix_object_new(sizeof *part, &mix_variable_class) : NULL;
  if (!part) return mix_release(memory), NULL;
  part->memory = memory;
  part->name = variable->name;
  part->dtype = variable->dtype;
  part->shape = shape;
  return part;
}

static bool copy_rows(mix_variable *whole, const mix_variable_share *share) {
  const size_t size = mix_dtype_size(whole->dtype);
  const size_t first = (size_t)mix_division_begin(&share->division, share->ranks, share->rank) * size;
  const char *from = mix_memory_map(whole->memory, MIX_MAP_READ);
  if (!from) return false;
  const bool copied =
      mix_memory_copy_in(share->part->memory, 0, from + first, mix_memory_bytes(share->part->memory));
  mix_memory_unmap(whole->memory);
  return copied;
}

bool mix_variable_update_part(mix_variable *variable) {
  mix_variable_share *share = variable->share;
  share->written_at = share->clock->version;
  share->gathered = false;
  if (!share->part) return true;
  if (!mix_variable_before_write(share->part) || !copy_rows(variable, share)) return false;
  share->part->version++;
  return true;
}

static bool make_part(mix_variable *variable, mix_variable_share *share) {
  const int64_t rows = mix_division_rows(&share->division, share->ranks, share->rank);
  if (!rows) return true;
  mix_shape shape = variable->shape;
  if (shape.rank) shape.dims[0] = rows;
  share->part =
      part_of(variable, shape, mix_memory_new(&mix_host_memory, mix_value_bytes(variable->dtype, shape)));
  return share->part && copy_rows(variable, share);
}

static void share_finalize(void *object) {
  mix_variable_share *share = object;
  mix_release(share->part);
  mix_release(share->clock);
}

static const mix_class share_class = {.name = "share of a variable", .finalize = share_finalize};

bool mix_variable_divide(mix_variable *variable, mix_division division, int rank, int ranks,
                         mix_variable *clock, mix_dtype narrow) {
  mix_variable_share *share = mix_object_new(sizeof *share, &share_class);
  if (!share) return false;
  share->division = division, share->rank = rank, share->ranks = ranks;
  share->clock = mix_retain(clock);
  share->written_at = clock->version;
  share->narrow = narrow;
  if (!make_part(variable, share) || (narrow == MIX_DTYPE_NONE && !mix_variable_drop_whole(variable)))
    return mix_release(share), false;
  variable->share = share;
  return true;
}

void mix_variable_rejoin(mix_variable *variable) {
  mix_release(variable->share);
  variable->share = NULL;
}

/* ---- the whole ---- */

bool mix_variable_set_gathered(mix_variable *variable, mix_memory *memory) {
  const bool fits =
      mix_memory_device_of(memory) == &mix_host_memory && mix_memory_bytes(memory) == bytes_of(variable);
  if (fits ? !set_storage(variable, mix_retain(memory))
           : !mix_variable_make_room(variable) || !mix_variable_before_write(variable) ||
                 !mix_memory_copy(variable->memory, memory))
    return false;
  variable->version++;
  variable->share->written_at = variable->share->clock->version;
  variable->share->gathered = true;
  return true;
}

static void count_writes(int count, mix_variable *const *written) {
  for (int i = 0; i < count; i++) {
    mix_variable *original = written[i]->original;
    written[i]->version++;
    if (original && original->share) original->version++; /* of which the run writes the copy alone */
  }
}

void mix_variables_note_write(int count, mix_variable *const *written) {
  count_writes(count, written);
  for (int i = 0; i < count; i++)
    if (written[i]->original) written[i]->copied_version = written[i]->original->version;
}

/* The copy of a divided weight is all that there is of the whole here: it stays current, under a new stamp.
 */
void mix_variables_note_failure(int count, mix_variable *const *written) {
  count_writes(count, written);
  for (int i = 0; i < count; i++)
    if (written[i]->original && written[i]->original->share)
      written[i]->copied_version = written[i]->original->version;
}
