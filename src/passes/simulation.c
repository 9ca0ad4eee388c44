/* What is simulated: a setting of the process, and the counts by layer. */
#include "passes/simulation.h"

#include "base/alloc.h"
#include "base/error.h"
#include <mixtape/simulate.h>
#include <pthread.h>
#include <string.h>

static const char *const formats[MIX_BLOCK_FORMATS] = {
    [MIX_BLOCK_NONE] = "none",
    [MIX_BLOCK_MXFP8] = "mxfp8",
    [MIX_BLOCK_NVFP4] = "nvfp4",
    [MIX_BLOCK_FLOAT8_CURRENT] = "float8-current",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_simulation current;
static const char **excepted; /* interned, ended by NULL */
static uint64_t key;
static mix_quantized_count *counts; /* plans point to them, so they stay */

static mix_block_format format_of(const char *name) {
  for (int f = 0; name && f < MIX_BLOCK_FORMATS; f++)
    if (!strcmp(name, formats[f])) return (mix_block_format)f;
  if (name)
    mix_fail_value("simulate_products: format is '%.40s'; expected mxfp8, nvfp4, float8-current or none",
                   name);
  return MIX_BLOCK_NONE;
}

const char *mix_block_format_name(mix_block_format format) { return formats[format]; }

/* A copy with interned names; NULL: none, or out of memory. */
static const char **copy_names(const char *const *names) {
  int count = 0;
  while (names && names[count]) count++;
  const char **copy = count ? mix_calloc((size_t)count + 1, sizeof *copy) : NULL;
  for (int i = 0; copy && i < count; i++) copy[i] = mix_intern(names[i]);
  return copy;
}

static void set(const mix_simulation *simulation, const char **names) {
  static uint64_t changes;
  pthread_mutex_lock(&lock);
  mix_free(excepted);
  current = *simulation;
  excepted = names;
  key = simulation->format ? ++changes : 0;
  for (mix_quantized_count *c = counts; c; c = c->next) {
    atomic_store(&c->numbers, 0);
    atomic_store(&c->saturated, 0);
    atomic_store(&c->flushed, 0);
  }
  pthread_mutex_unlock(&lock);
}

mix_status mix_simulate_products_with(const mix_simulate_options *given) {
  if (mix_failed()) return mix_error();
  mix_simulate_options options;
  if (!mix_options_copy(&options, sizeof options, given, "simulate_products")) return mix_error();
  const mix_simulation simulation = {format_of(options.format), options.stochastic_rounding,
                                     (int64_t)options.seed};
  if (!mix_failed() && options.seed > INT64_MAX)
    mix_fail_value("simulate_products: seed is %llu; expected less than 2^63",
                   (unsigned long long)options.seed);
  const char **names = mix_failed() ? NULL : copy_names(options.except_layers);
  if (mix_failed()) {
    mix_free(names);
    return mix_error();
  }
  set(&simulation, names);
  return MIX_OK;
}

mix_simulation mix_simulation_now(void) {
  pthread_mutex_lock(&lock);
  const mix_simulation now = current;
  pthread_mutex_unlock(&lock);
  return now;
}

uint64_t mix_simulation_key(void) {
  pthread_mutex_lock(&lock);
  const uint64_t now = key;
  pthread_mutex_unlock(&lock);
  return now;
}

/* Does the path have these whole parts: "model/block/dense" has block, dense and block/dense? */
static bool has_parts(const char *path, const char *parts) {
  const size_t length = strlen(parts);
  for (const char *at = path; length && (at = strstr(at, parts)); at++)
    if ((at == path || at[-1] == '/') && (!at[length] || at[length] == '/')) return true;
  return false;
}

bool mix_simulation_excepts(const char *path) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; excepted && excepted[i] && !found; i++) found = has_parts(path, excepted[i]);
  pthread_mutex_unlock(&lock);
  return found;
}

mix_quantized_count *mix_simulation_counted(const char *layer, const char *operand) {
  const char *name = mix_intern(layer);
  pthread_mutex_lock(&lock);
  mix_quantized_count **at = &counts;
  while (*at && ((*at)->layer != name || strcmp((*at)->operand, operand))) at = &(*at)->next;
  if (!*at && name && (*at = mix_calloc(1, sizeof **at))) (*at)->layer = name, (*at)->operand = operand;
  mix_quantized_count *found = *at;
  pthread_mutex_unlock(&lock);
  return found;
}

/* Row `index` of those that have counted numbers; -1: all of them. Returns how many it passed. */
static int find_row(int index, mix_simulated_row *row) {
  int passed = 0;
  pthread_mutex_lock(&lock);
  for (mix_quantized_count *c = counts; c; c = c->next) {
    const int64_t numbers = atomic_load(&c->numbers);
    if (!numbers) continue;
    if (passed++ != index) continue;
    *row = (mix_simulated_row){.size = sizeof *row,
                               .layer = c->layer,
                               .operand = c->operand,
                               .numbers = numbers,
                               .saturated = atomic_load(&c->saturated),
                               .flushed = atomic_load(&c->flushed)};
  }
  pthread_mutex_unlock(&lock);
  return passed;
}

int mix_simulated_count(void) { return find_row(-1, NULL); }

mix_status mix_simulated_get(int index, mix_simulated_row *row, size_t row_size) {
  if (mix_failed()) return mix_error();
  mix_simulated_row found;
  const int count = find_row(index, &found);
  if (!row || row_size > sizeof *row)
    return mix_fail_status(MIX_VALUE_ERROR, "simulated_get: a row of %zu bytes is not known to this library",
                           row_size);
  if (index < 0 || index >= count)
    return mix_fail_status(MIX_VALUE_ERROR, "simulated_get: row %d is outside; there are %d", index, count);
  memcpy(row, &found, row_size);
  return MIX_OK;
}
