/* Threads, accumulation, float32 precision, determinism and use of memory of the process. Initial values come
 * from the environment when they are first needed. A bad value is an error of each call that needs it, until
 * a call sets it. */
#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/error.h"
#include "base/number.h"
#include "base/processor.h"
#include <mixtape/device.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { UNSET = -1, MAX_THREADS = 1024 };

static atomic_int threads = UNSET;

/* ---- threads ---- */

/* OMP_NUM_THREADS may be a list with a number for each nesting level; the first one counts. */
static int default_threads(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  long wanted = text ? strtol(text, NULL, 10) : 0;
  if (wanted < 1) wanted = mix_cpu_cores();
  return wanted < MAX_THREADS ? (int)wanted : MAX_THREADS;
}

int mix_threads(void) {
  int number = atomic_load(&threads);
  if (number != UNSET) return number;
  const char *text = getenv("MIXTAPE_THREADS");
  char *end = NULL;
  long wanted = text ? strtol(text, &end, 10) : 0;
  bool valid = !text || (*end == 0 && wanted >= 0 && wanted <= MAX_THREADS);
  number = valid && wanted > 0 ? (int)wanted : default_threads();
  if (valid)
    atomic_store(&threads, number);
  else
    mix_fail_value("MIXTAPE_THREADS is \"%s\"; expected a number from 0 (all cores) to %d", text,
                   MAX_THREADS);
  return number;
}

mix_status mix_set_threads(int number) {
  if (mix_failed()) return mix_error();
  if (number < 0 || number > MAX_THREADS)
    return mix_fail_status(MIX_VALUE_ERROR, "set_threads: got %d; expected a number from 0 (all cores) to %d",
                           number, MAX_THREADS);
  atomic_store(&threads, number ? number : default_threads());
  return MIX_OK;
}

/* ---- settings that are one of some names ---- */

typedef struct choice {
  const char *call, *variable; /* of the API and of the environment */
  const char *what, *expected; /* for messages */
  const char *const *names;    /* ended by NULL; the first is the default */
  atomic_int value;
} choice;

static choice accumulation = {.call = "set_accumulate",
                              .variable = "MIXTAPE_ACCUMULATE",
                              .what = "accumulation",
                              .expected = "\"auto\", \"exact\" or \"blocked\"",
                              .names = (const char *const[]){"auto", "exact", "blocked", NULL},
                              .value = UNSET};
static choice float32 = {.call = "set_float32_precision",
                         .variable = "MIXTAPE_FLOAT32_PRECISION",
                         .what = "float32 precision",
                         .expected = "\"highest\" or \"high\"",
                         .names = (const char *const[]){"highest", "high", NULL},
                         .value = UNSET};
static choice memory = {.call = "set_memory",
                        .variable = "MIXTAPE_MEMORY",
                        .what = "use of memory",
                        .expected = "\"auto\", \"fast\" or \"least\", or an amount such as \"512MiB\"",
                        .names = (const char *const[]){"auto", "fast", "least", NULL},
                        .value = UNSET};

static choice deterministic = {.call = "set_deterministic",
                               .variable = "MIXTAPE_DETERMINISTIC",
                               .what = "setting of determinism",
                               .expected = "\"off\" or \"on\"",
                               .names = (const char *const[]){"off", "on", NULL},
                               .value = UNSET};

static int named(const choice *c, const char *name, const char *source) {
  for (int i = 0; name && c->names[i]; i++)
    if (strcmp(name, c->names[i]) == 0) return i;
  mix_fail_value("%s: there is no %s \"%s\"; expected %s", source, c->what, name ? name : "", c->expected);
  return UNSET;
}

static int value_of(choice *c) {
  int number = atomic_load(&c->value);
  if (number != UNSET) return number;
  const char *name = getenv(c->variable);
  number = name && *name ? named(c, name, c->variable) : 0;
  if (number == UNSET) return 0;
  atomic_store(&c->value, number);
  return number;
}

static mix_status set(choice *c, const char *name) {
  if (mix_failed()) return mix_error();
  const int number = named(c, name, c->call);
  if (number == UNSET) return mix_error();
  atomic_store(&c->value, number);
  return MIX_OK;
}

const char *mix_accumulation_name(mix_accumulation number) { return accumulation.names[number]; }
const char *mix_accumulate(void) { return accumulation.names[value_of(&accumulation)]; }
mix_status mix_set_accumulate(const char *name) { return set(&accumulation, name); }

mix_accumulation mix_accumulation_resolve(mix_accumulation setting) {
  const uint32_t features = mix_cpu_features();
  if (setting != MIX_ACCUMULATE_AUTO) return setting;
  return features & MIX_CPU_AVX512_FP16 && !(features & MIX_CPU_AMX_BF16) ? MIX_ACCUMULATE_BLOCKED
                                                                          : MIX_ACCUMULATE_EXACT;
}

const char *mix_float32_precision_text(mix_float32_precision number) { return float32.names[number]; }
const char *mix_float32_precision_name(void) { return float32.names[value_of(&float32)]; }
mix_status mix_set_float32_precision(const char *name) { return set(&float32, name); }

mix_matmul_precision mix_matmul_precision_default(void) {
  return (mix_matmul_precision){.accumulation = (mix_accumulation)value_of(&accumulation),
                                .float32 = (mix_float32_precision)value_of(&float32)};
}

bool mix_deterministic(void) { return value_of(&deterministic); }
mix_status mix_set_deterministic(bool on) { return set(&deterministic, on ? "on" : "off"); }

/* ---- memory: a name, or an amount ---- */

static atomic_size_t budget;
static pthread_once_t budget_read = PTHREAD_ONCE_INIT; /* from the environment, before any call sets it */

/* An amount in the environment is a budget, beside the default use of memory. */
static bool read_environment(size_t *bytes) {
  const char *text = getenv(memory.variable);
  return text && mix_bytes_read(text, bytes);
}

static int memory_use(void) {
  size_t bytes;
  int unset = UNSET;
  if (atomic_load(&memory.value) == UNSET && read_environment(&bytes))
    atomic_compare_exchange_strong(&memory.value, &unset, MIX_MEMORY_AUTO);
  return value_of(&memory);
}

static void read_budget(void) {
  size_t bytes;
  if (read_environment(&bytes)) atomic_store(&budget, bytes);
}

size_t mix_memory_budget(void) {
  pthread_once(&budget_read, read_budget);
  return atomic_load(&budget);
}

mix_status mix_set_memory_budget(size_t bytes) {
  if (mix_failed()) return mix_error();
  pthread_once(&budget_read, read_budget);
  atomic_store(&budget, bytes);
  return MIX_OK;
}

const char *mix_memory_name(void) { return memory.names[memory_use()]; }
mix_status mix_set_memory(const char *name) {
  size_t bytes;
  return name && mix_bytes_read(name, &bytes) ? mix_set_memory_budget(bytes) : set(&memory, name);
}
mix_memory_use mix_memory_use_default(void) { return (mix_memory_use)memory_use(); }

/* ---- other processes ---- */

static _Atomic(mix_communicator *) communicator;
mix_communicator *mix_communicator_in_force(void) { return atomic_load(&communicator); }
void mix_communicator_set(mix_communicator *next) { atomic_store(&communicator, next); }
