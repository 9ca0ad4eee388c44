/* A hash table from names to numbers: open addressing, load at most one half. */
#include "amp/names.h"
#include "base/alloc.h"
#include "base/error.h"

#include <limits.h>
#include <string.h>

/* FNV-1a, 64 bits (Fowler, Noll, Vo), with its high half mixed in. */
static uint64_t hash(const char *text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h ^ h >> 32;
}

static struct mix_amp_name *slot_of(struct mix_amp_name *slots, int count, const char *text) {
  uint64_t i = hash(text) & (uint64_t)(count - 1);
  while (slots[i].text && strcmp(slots[i].text, text) != 0) i = (i + 1) & (uint64_t)(count - 1);
  return &slots[i];
}

static bool grow(mix_amp_names *names) {
  if (names->slot_count > INT_MAX / 2) return mix_fail_memory("a table of names");
  int count = names->slot_count ? names->slot_count * 2 : 64;
  struct mix_amp_name *slots = mix_calloc((size_t)count, sizeof *slots);
  if (!slots) return false;
  for (int i = 0; i < names->slot_count; i++)
    if (names->slots[i].text) *slot_of(slots, count, names->slots[i].text) = names->slots[i];
  mix_free(names->slots);
  names->slots = slots;
  names->slot_count = count;
  return true;
}

int *mix_amp_names_find(const mix_amp_names *names, const char *text) {
  if (!names->slot_count) return NULL;
  struct mix_amp_name *slot = slot_of(names->slots, names->slot_count, text);
  return slot->text ? &slot->value : NULL;
}

int *mix_amp_names_add(mix_amp_names *names, const char *text) {
  if (names->count >= names->slot_count / 2 && !grow(names)) return NULL;
  struct mix_amp_name *slot = slot_of(names->slots, names->slot_count, text);
  if (!slot->text) {
    slot->text = text;
    names->count++;
  }
  return &slot->value;
}

void mix_amp_names_free(mix_amp_names *names) {
  mix_free(names->slots);
  *names = (mix_amp_names){0};
}
