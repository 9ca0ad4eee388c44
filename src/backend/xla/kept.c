/* Values that runs replaced, until the copies that the runs need are known to be good: a run that donated
 * them to a plug-in whose copy then fails would have lost them. */
#include "backend/xla/xla.h"

#include "base/error.h"
#include "tensor/memory_inside.h"

static mix_xla_kept *add(mix_xla_run *run, mix_memory *memory, mix_memory *former) {
  mix_xla_kept *kept = &run->kept[run->kept_count++];
  *kept = (mix_xla_kept){.memory = mix_retain(memory), .former = former ? mix_retain(former) : NULL};
  mix_xla_count_kept(memory, 1);
  if (former) mix_xla_count_kept(former, 1);
  run->kept_bytes += memory->bytes;
  return kept;
}

void mix_xla_keep_former(mix_xla_run *run, mix_memory *memory, mix_memory *former) {
  add(run, memory, former);
}

void mix_xla_keep_buffer(mix_xla_run *run, mix_memory *memory) {
  mix_xla_kept *kept = add(run, memory, NULL);
  kept->buffer = mix_xla_take_buffer(memory, &kept->type);
}

void mix_xla_drop_kept(mix_xla_run *run) {
  for (int i = 0; i < run->kept_count; i++) {
    mix_xla_kept *kept = &run->kept[i];
    mix_pjrt_destroy(mix_xla_plugin(), PJRT_BUFFER_DESTROY, kept->buffer);
    mix_xla_count_kept(kept->memory, -1);
    if (kept->former) mix_xla_count_kept(kept->former, -1);
    mix_release(kept->memory);
    mix_release(kept->former);
  }
  run->kept_count = 0;
  run->kept_bytes = 0;
}

/* The first value that was kept of a memory is the one from before the run. */
static bool is_restored(const mix_xla_run *from, const mix_xla_kept *upto) {
  for (const mix_xla_run *run = from; run; run = run->next)
    for (int i = 0; i < run->kept_count; i++) {
      if (&run->kept[i] == upto) return false;
      if (run->kept[i].memory == upto->memory) return true;
    }
  return false;
}

/* A memory that somebody else holds keeps its value: this one gets a copy. */
static void restore(mix_xla_kept *kept) {
  if (!kept->former) {
    mix_xla_give_buffer(kept->memory, kept->buffer, kept->type);
    kept->buffer = NULL;
    return;
  }
  mix_xla_copy_value(kept->memory, kept->former);
}

void mix_xla_restore_kept(mix_xla_run *from) {
  for (mix_xla_run *run = from; run; run = run->next)
    for (int i = 0; i < run->kept_count; i++)
      if (!is_restored(from, &run->kept[i])) restore(&run->kept[i]);
  for (mix_xla_run *run = from; run; run = run->next) mix_xla_drop_kept(run);
}
