/* Unique names, as Keras makes them (docs/spec/keras.md, section 0). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layer/layer.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  const char *prefix; /* interned */
  int64_t used;
} * counters;
static int counter_count, counter_capacity;

void mix_clear_names(void) {
  pthread_mutex_lock(&lock);
  counter_count = 0;
  mix_free(counters);
  counters = NULL;
  counter_capacity = 0;
  pthread_mutex_unlock(&lock);
}

/* The number of earlier uses of the prefix; -1 with the error recorded. */
static int64_t count_use(const char *prefix) {
  int64_t before = -1;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < counter_count && counters[i].prefix != prefix) i++;
  if (i < counter_count) {
    before = counters[i].used++;
  } else if (mix_reserve(&counters, &counter_capacity, counter_count + 1, sizeof *counters)) {
    counters[counter_count].prefix = prefix;
    counters[counter_count++].used = 1;
    before = 0;
  }
  pthread_mutex_unlock(&lock);
  return before;
}

const char *mix_unique_name(const char *prefix, bool from_one) {
  char name[160];
  const char *interned = mix_intern(prefix);
  if (!interned) return NULL;
  int64_t before = count_use(interned);
  if (before < 0) return NULL;
  if (from_one) before++;
  if (!before) return interned;
  snprintf(name, sizeof name, "%.120s_%lld", prefix, (long long)before);
  return mix_intern(name);
}

/* Keras: (.)([A-Z][a-z]+) -> \1_\2, then ([a-z])([A-Z]) -> \1_\2, then lower case. Both substitutions take
 * matches from left to right without overlap. */
const char *mix_snake_case(const char *name, bool private_prefix, char *text, size_t size) {
  char words[128], parts[256];
  size_t n = 0, m = 0, k = 0;
  for (; *name && n + 1 < sizeof words; name++)
    if (isalnum((unsigned char)*name) || *name == '_') words[n++] = *name;
  words[n] = 0;
  for (size_t i = 0; i < n;) {
    bool word = i + 2 < n && isupper((unsigned char)words[i + 1]) && islower((unsigned char)words[i + 2]);
    parts[m++] = words[i++];
    if (!word) continue;
    parts[m++] = '_';
    parts[m++] = words[i++];
    while (i < n && islower((unsigned char)words[i])) parts[m++] = words[i++];
  }
  if (private_prefix && m && parts[0] == '_') k = (size_t)snprintf(text, size, "private");
  for (size_t i = 0; i < m && k + 2 < size; i++) {
    text[k++] = (char)tolower((unsigned char)parts[i]);
    if (i + 1 < m && islower((unsigned char)parts[i]) && isupper((unsigned char)parts[i + 1]))
      text[k++] = '_';
  }
  if (size) text[k < size ? k : size - 1] = 0;
  return text;
}
