#include "base/held_log.h"

#include "base/alloc.h"
#include <string.h>

typedef struct held_message {
  struct held_message *next;
  mix_log_level level;
  char text[];
} held_message;

static _Thread_local int depth;
static _Thread_local held_message *first, *last;

void mix_log_hold(void) { depth++; }

bool mix_log_kept(mix_log_level level, const char *message) {
  if (depth == 0) return false;
  const size_t size = strlen(message) + 1;
  held_message *held = mix_alloc(sizeof *held + size);
  if (!held) return true; /* lost: there is no memory, which is recorded */
  held->next = NULL;
  held->level = level;
  memcpy(held->text, message, size);
  if (last)
    last->next = held;
  else
    first = held;
  last = held;
  return true;
}

void mix_log_let_go(void) {
  if (--depth > 0) return;
  held_message *held = first;
  first = last = NULL;
  while (held) {
    held_message *next = held->next;
    mix_log_text(held->level, held->text);
    mix_free(held);
    held = next;
  }
}
