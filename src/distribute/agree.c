/* Texts between ranks: what must be the same everywhere, and whose problem it is. */
#include "distribute/distribute.h"

#include "backend/communicator.h"
#include "base/alloc.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

static bool succeeded(const char *call, const char *failure) {
  if (failure) mix_fail_runtime("%s: %s", call, failure);
  return !failure;
}

char *mix_text_of_first_rank(const char *call, const char *text) {
  mix_communicator *c = mix_communicator_in_force();
  if (!c) return mix_strdup(text);
  int64_t length = (int64_t)strlen(text);
  if (!succeeded(call, c->broadcast(c, &length, sizeof length, 0))) return NULL;
  char *first = mix_calloc(1, (size_t)length + 1);
  if (!first) return NULL;
  if (!c->rank) memcpy(first, text, (size_t)length);
  if (succeeded(call, c->broadcast(c, first, (size_t)length, 0))) return first;
  mix_free(first);
  return NULL;
}

bool mix_gather_numbers(const char *call, int own, int *all) {
  mix_communicator *c = mix_communicator_in_force();
  if (c) return succeeded(call, c->gather(c, &own, sizeof own, all));
  *all = own;
  return true;
}

bool mix_gather_integers(const char *call, int count, const int64_t *own, int64_t *all) {
  mix_communicator *c = mix_communicator_in_force();
  if (c) return succeeded(call, c->gather(c, own, sizeof *own * (size_t)count, all));
  memcpy(all, own, sizeof *own * (size_t)count);
  return true;
}

bool mix_ranks_succeed(const char *call) {
  enum { BYTES = MIX_ERROR_BYTES };
  mix_communicator *c = mix_communicator_in_force();
  if (!c) return !mix_failed();
  char own[BYTES] = "";
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  if (pending.status != MIX_OK) snprintf(own, sizeof own, "%s", pending.message);
  char *all = mix_calloc((size_t)c->ranks, BYTES);
  const char *failure = all ? c->gather(c, own, BYTES, all) : "out of memory";
  if (pending.status != MIX_OK) {
    mix_error_put_back(&pending);
  } else if (succeeded(call, failure)) {
    for (int r = 0; r < c->ranks && !mix_failed(); r++)
      if (all[(size_t)r * BYTES])
        mix_fail_runtime("%s: rank %d of %d failed: %s", call, r, c->ranks, all + (size_t)r * BYTES);
  }
  mix_free(all);
  return !mix_failed();
}
