/* Table figures: the project's figures, each beside its goal for the instruction sets in force. */
#include "base/json.h"
#include "base/processor.h"
#include "cli/bench/step_candidate.h"
#include "gemm_comparison.h"
#include "tables.h"
#include "update_candidate.h"
#include <math.h>

/* Goals differ by what multiplies 16-bit numbers: tiles, float16 vectors, pairs of bfloat16 at a gain, or
 * float32 vectors. Kinds from FIRST_UNMEASURED on have none: nobody has measured one. */
enum { WITH_AMX, WITH_FP16, WITH_PAIRS, NEITHER, MACHINES, FIRST_UNMEASURED = MACHINES };
enum { NEON_BF16 = FIRST_UNMEASURED, NEON_FP16, NEON, KINDS };
static const char *const machine_names[KINDS] = {"AMX-BF16",
                                                 "AVX512-FP16, no AMX",
                                                 "AVX512-BF16 at a gain, neither AMX nor AVX512-FP16",
                                                 "none of AMX, AVX512-FP16, AVX512-BF16 at a gain",
                                                 "arm64, neon_bf16: none, not measured",
                                                 "arm64, neon_fp16: none, not measured",
                                                 "arm64, neon: none, not measured"};

typedef struct goals {
  double on[KINDS]; /* 0: none */
  bool at_most;
} goals;
#define AT_LEAST(amx, fp16, pairs, neither)                                                                  \
  (goals) { {amx, fp16, pairs, neither}, false }
#define EVERYWHERE(min)                                                                                      \
  (goals) { {min, min, min, min}, false }
#define AT_MOST(max)                                                                                         \
  (goals) { {max, max, max, max}, true }

typedef struct table {
  const bench_settings *settings;
  int machine;
  json_t *rows, *memory, *products;
} table;

static int machine_in_force(void) {
  const uint32_t features = mix_cpu_features();
  return features & MIX_CPU_NEON_BF16     ? NEON_BF16
         : features & MIX_CPU_NEON_FP16   ? NEON_FP16
         : features & MIX_CPU_NEON        ? NEON
         : features & MIX_CPU_AMX_BF16    ? WITH_AMX
         : features & MIX_CPU_AVX512_FP16 ? WITH_FP16
         : features & MIX_CPU_BF16_PAIRS  ? WITH_PAIRS
                                          : NEITHER;
}

/* NaN: the peer is not installed, or no kernel does this. */
static void add(const table *t, const char *name, double value, goals goals) {
  const double goal = goals.on[t->machine];
  const bool missing = isnan(value);
  const bool met = goals.at_most ? value <= goal : value >= goal;
  json_t *row = json_pack("{s:s, s:o}", "figure", name, "measured", missing ? json_null() : json_real(value));
  if (goal > 0) mix_json_set(row, goals.at_most ? "at_most" : "at_least", json_real(goal));
  if (goal > 0 && !missing) mix_json_set(row, "met", json_boolean(met));
  mix_json_append(t->rows, row);
  if (!t->settings->text) return;
  char measured[32], wanted[32] = "";
  snprintf(measured, sizeof measured, missing ? "absent" : "%.3f", value);
  if (goal > 0) snprintf(wanted, sizeof wanted, "%s %.4g", goals.at_most ? "<=" : ">=", goal);
  printf("%-74s %8s  %-8s %s\n", name, measured, wanted, goal > 0 && !missing ? met ? "met" : "MISSED" : "");
  fflush(stdout);
}

/* ---- steps of the guide's model ---- */

enum { FLOAT32, FLOAT16, BFLOAT16, UNSCALED, STEPS };
static const char *const step_names[STEPS] = {"float32", "mixed_float16", "mixed_bfloat16",
                                              "mixed_float16 without loss scaling"};

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }

static void explain_memory(const table *t, const bench_step *steps, int64_t units, int64_t batch) {
  if (t->settings->text)
    printf("memory of a step, %lld units, batch %lld, MiB: %-35s %8s %8s %8s %8s %8s %8s\n", (long long)units,
           (long long)batch, "", "peak", "least", "state", "between", "scratch", "batch");
  for (int i = 0; i < STEPS; i++) {
    const mix_plan_report *r = &steps[i].report;
    if (t->settings->text)
      printf("  %-76s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", step_names[i], mib(r->peak_bytes),
             mib(r->least_bytes), mib(r->variable_bytes), mib(r->arena_bytes), mib(r->workspace_bytes),
             mib(r->argument_bytes));
    mix_json_append(t->memory,
                    json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "units", (json_int_t)units,
                              "batch_size", (json_int_t)batch, "policy", step_names[i], "peak_bytes",
                              (json_int_t)r->peak_bytes, "state_bytes", (json_int_t)r->variable_bytes,
                              "between_bytes", (json_int_t)r->arena_bytes, "scratch_bytes",
                              (json_int_t)r->workspace_bytes, "batch_bytes", (json_int_t)r->argument_bytes,
                              "least_bytes", (json_int_t)r->least_bytes));
  }
  if (t->settings->text)
    printf(
        "  least: the peak without 16-bit copies and stored gradients of weights; --memory least comes near "
        "it\n"
        "  state: weights, slots, metrics and the 16-bit copies of weights; between: activations and "
        "gradients that steps of the plan\n"
        "  hand on (under loss scaling gradients of weights too, which may have to wait for the finite "
        "test; else updates take them as they come);\n"
        "  scratch: operands as kernels pack them; batch: images in float32 and labels\n");
}

typedef struct configuration {
  int64_t units, batch;
  goals bfloat16, float16;
} configuration;

typedef struct scaling {
  double share, quartiles[2];
  int rounds;
} scaling;

/* The share of a step's time that loss scaling adds. It is a small difference of large times: only these two
 * candidates run, and the median of the ratios of the rounds counts. Below 0: updates that are not fused into
 * their products are faster. */
static bool share_of_scaling(const table *t, bench_step *scaled, bench_step *unscaled, scaling *found) {
  static bench_candidate runs[2];
  runs[0] = (bench_candidate){.run = bench_step_run, .context = scaled};
  runs[1] = (bench_candidate){.run = bench_step_run, .context = unscaled};
  if (!bench_interleave(runs, 2, t->settings->quick ? 1 : 20, &found->rounds)) return false;
  found->share = 1 - bench_ratio(&runs[1], &runs[0], found->rounds);
  bench_ratio_quartiles(&runs[0], &runs[1], found->rounds, found->quartiles);
  for (int i = 0; i < 2; i++) found->quartiles[i] = 1 - 1 / found->quartiles[i];
  return true;
}

/* The quartiles show how much so few rounds can tell. */
static void add_scaling(const table *t, const char *name, const scaling *x, goals goals) {
  add(t, name, x->share, goals);
  mix_json_set(json_array_get(t->rows, json_array_size(t->rows) - 1), "quartiles",
               json_pack("[f, f]", x->quartiles[0], x->quartiles[1]));
  if (t->settings->text)
    printf("  at least half of %d rounds lie between %.3f and %.3f\n", x->rounds, x->quartiles[0],
           x->quartiles[1]);
}

static bool steps_of(const table *t, const configuration *c) {
  static bench_step steps[STEPS];
  static bench_candidate runs[STEPS];
  mix_generator *generator = mix_generator_new(1);
  mix_list *data = generator ? bench_step_data(generator, c->batch) : NULL;
  if (!data) return false;
  for (int i = 0; i < STEPS; i++) {
    steps[i] = (bench_step){.policy = i == UNSCALED ? step_names[FLOAT16] : step_names[i],
                            .unscaled = i == UNSCALED};
    if (!bench_step_prepare(&steps[i], c->units, data)) return false;
    runs[i] = (bench_candidate){.run = bench_step_run, .context = &steps[i]};
  }
  int rounds;
  /* A step takes a second at batch 8192: a dozen rounds. */
  const double budget = t->settings->quick ? 1 : c->batch >= 8192 ? 30 : 12;
  if (!bench_interleave(runs, UNSCALED, budget, &rounds)) return false;
  scaling loss_scaling;
  if (!share_of_scaling(t, &steps[FLOAT16], &steps[UNSCALED], &loss_scaling)) return false;
  char name[128], where[64];
  snprintf(where, sizeof where, "%lld units, batch %lld", (long long)c->units, (long long)c->batch);
  snprintf(name, sizeof name, "step, %s: mixed_bfloat16 / own float32", where);
  add(t, name, bench_ratio(&runs[FLOAT32], &runs[BFLOAT16], rounds), c->bfloat16);
  snprintf(name, sizeof name, "step, %s: mixed_float16 / own float32", where);
  add(t, name, bench_ratio(&runs[FLOAT32], &runs[FLOAT16], rounds), c->float16);
  snprintf(name, sizeof name, "step, %s: share of loss scaling as a whole", where);
  add_scaling(t, name, &loss_scaling, c->units == 4096 ? AT_MOST(0.01) : EVERYWHERE(0));
  const goals half = c->batch == 8192 ? AT_MOST(0.55) : EVERYWHERE(0);
  const double arena = (double)steps[FLOAT32].report.arena_bytes;
  snprintf(name, sizeof name, "activations, %s: bytes under mixed_bfloat16 / float32", where);
  add(t, name, (double)steps[BFLOAT16].report.arena_bytes / arena, half);
  snprintf(name, sizeof name, "activations, %s: bytes under mixed_float16 / float32", where);
  add(t, name, (double)steps[FLOAT16].report.arena_bytes / arena, half);
  explain_memory(t, steps, c->units, c->batch);
  return true;
}

static bool steps(const table *t) {
  const configuration own = {t->settings->units ? t->settings->units : 64,
                             t->settings->batch ? t->settings->batch : 128, EVERYWHERE(0), EVERYWHERE(0)};
  const configuration all[] = {{4096, 8192, AT_LEAST(5.5, 1.65, 1.65, 0.95), AT_LEAST(2.6, 1.75, 0.95, 0.95)},
                               {4096, 1024, AT_LEAST(0, 0, 1.6, 0), EVERYWHERE(0)},
                               {4096, 128, AT_LEAST(2.8, 1.45, 1.45, 0.95), AT_LEAST(1.8, 1.5, 0.95, 0.95)},
                               {64, 128, AT_LEAST(1, 1, 1.05, 0.95), AT_LEAST(1, 1, 0.95, 0.95)}};
  const bool chosen = t->settings->units || t->settings->batch;
  bool good = true;
  for (size_t i = 0; i < sizeof all / sizeof *all && good; i++) {
    const bool same = all[i].units == own.units && all[i].batch == own.batch;
    const bool measured = (t->machine < FIRST_UNMEASURED), large = (all[i].batch > 128);
    const bool wanted = (!measured || all[i].bfloat16.on[t->machine] > 0) && !(t->settings->quick && large);
    if (chosen ? !same : !wanted) continue;
    MIX_SCOPE { good = steps_of(t, &all[i]); }
    if (chosen) return good;
  }
  if (good && chosen)
    MIX_SCOPE { good = steps_of(t, &own); }
  return good;
}

/* ---- products ---- */

/* Products of the guide's step at 4096 units: with AMX at batch 8192 and 2048, without it at batch 8192 and
 * 128. These are the large shapes of the reports from which the goals come. */
static const bench_shape with_amx[] = {
    {0, 0, 8192, 4096, 4096}, {0, 1, 8192, 4096, 4096}, {1, 0, 4096, 4096, 8192}, {0, 0, 8192, 4096, 784},
    {1, 0, 784, 4096, 8192},  {0, 0, 2048, 4096, 4096}, {0, 1, 2048, 4096, 4096}, {1, 0, 4096, 4096, 2048}};
static const bench_shape without_amx[] = {
    {0, 0, 8192, 4096, 784},  {0, 1, 8192, 784, 4096},  {1, 0, 784, 4096, 8192}, {0, 0, 8192, 4096, 4096},
    {0, 1, 8192, 4096, 4096}, {1, 0, 4096, 4096, 8192}, {0, 0, 128, 4096, 784},  {0, 1, 128, 784, 4096},
    {1, 0, 784, 4096, 128},   {0, 0, 128, 4096, 4096},  {0, 1, 128, 4096, 4096}, {1, 0, 4096, 4096, 128}};
static const bench_shape quick[] = {{0, 0, 128, 4096, 784}, {1, 0, 784, 4096, 128}};

static const bench_shape *shapes_of(const table *t, size_t *count) {
  if (t->settings->quick) return *count = sizeof quick / sizeof *quick, quick;
  if (t->machine == WITH_AMX) return *count = sizeof with_amx / sizeof *with_amx, with_amx;
  return *count = sizeof without_amx / sizeof *without_amx, without_amx;
}

/* Candidates of one shape; the peers follow. */
enum { OWN_32, OWN_16, OWN_B16, OWN, CANDIDATES = OWN + BENCH_MAX_PEERS };
static const mix_dtype dtypes[] = {[OWN_32] = MIX_FLOAT32, [OWN_16] = MIX_FLOAT16, [OWN_B16] = MIX_BFLOAT16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

typedef struct product_figure {
  int slower, faster; /* the figure is the time of `slower` over that of `faster` */
  const char *name, *label;
  goals goals;
} product_figure;
static const product_figure own_figures[] = {
    {OWN_32, OWN_B16, "products, geometric mean: bfloat16 / own float32", "bfloat16",
     AT_LEAST(4.5, 1.5, 1.75, 0.95)},
    {OWN_32, OWN_16, "products, geometric mean: float16 / own float32", "float16",
     AT_LEAST(2, 1.7, 0.95, 0.95)}};
enum { OWN_FIGURES = sizeof own_figures / sizeof *own_figures, FIGURES = OWN_FIGURES + BENCH_MAX_PEERS };

static int own_of(mix_dtype dtype) {
  int i = 0;
  while (i < DTYPES - 1 && dtypes[i] != dtype) i++;
  return i;
}

/* Returns the number of figures. */
static int list_figures(product_figure list[FIGURES]) {
  int count = 0;
  while (count < OWN_FIGURES) list[count] = own_figures[count], count++;
  for (int p = 0; p < bench_gemm_peers.count; p++) {
    const bench_peer *peer = &bench_gemm_peers.list[p];
    list[count++] = (product_figure){.slower = OWN + p,
                                     .faster = own_of(peer->dtype),
                                     .name = peer->figure,
                                     .label = peer->label,
                                     .goals = EVERYWHERE(peer->at_least)};
  }
  return count;
}

typedef struct product_times {
  bench_candidate runs[CANDIDATES];
  int count, rounds;
  int at[CANDIDATES]; /* index in runs; -1: absent */
} product_times;

static void add_candidate(product_times *times, int which, bool (*run)(void *), bench_product *product) {
  times->at[which] = times->count;
  times->runs[times->count++] = (bench_candidate){.run = run, .context = product, .pause = true};
}

/* A peer follows our product of its dtype, on the same operands. */
static bool time_shape(const table *t, const bench_shape *shape, product_times *times) {
  const int threads = t->settings->threads;
  bench_product *products[OWN] = {NULL};
  bool good = true;
  times->count = 0;
  for (int i = 0; i < CANDIDATES; i++) times->at[i] = -1;
  for (int d = 0; d < DTYPES && good; d++) {
    good = (products[d] = bench_product_new(shape, dtypes[d], threads)) != NULL;
    if (good) add_candidate(times, d, bench_product_run, products[d]);
    for (int p = 0; p < bench_gemm_peers.count && good; p++) {
      const bench_peer *peer = &bench_gemm_peers.list[p];
      if (peer->dtype == dtypes[d] && peer->present(products[d]))
        add_candidate(times, OWN + p, peer->run, products[d]);
    }
  }
  good = good && bench_interleave(times->runs, times->count, t->settings->quick ? 0.2 : 4, &times->rounds);
  for (int d = 0; d < OWN; d++) bench_product_free(products[d]);
  return good;
}

/* NaN where a candidate is absent. */
static bool ratios_of(const table *t, const bench_shape *shape, const product_figure *list, int count,
                      double *ratios) {
  static product_times times;
  if (!time_shape(t, shape, &times)) return false;
  for (int f = 0; f < count; f++) {
    const int slower = times.at[list[f].slower], faster = times.at[list[f].faster];
    ratios[f] = slower >= 0 && faster >= 0
                    ? bench_ratio(&times.runs[slower], &times.runs[faster], times.rounds)
                    : NAN;
  }
  return true;
}

static void add_shape(const table *t, const bench_shape *shape, const product_figure *list, int count,
                      const double *ratios) {
  char name[64];
  snprintf(name, sizeof name, "%c%c,%lld,%lld,%lld", shape->ta ? 'T' : 'N', shape->tb ? 'T' : 'N',
           (long long)shape->m, (long long)shape->n, (long long)shape->k);
  json_t *row = json_pack("{s:s}", "product", name);
  for (int f = 0; f < count; f++)
    if (!isnan(ratios[f])) mix_json_set(row, list[f].label, json_real(ratios[f]));
  mix_json_append(t->products, row);
  if (!t->settings->text) return;
  printf("  %-22s", name);
  for (int f = 0; f < count; f++) isnan(ratios[f]) ? printf(" %9s", "") : printf(" %9.3f", ratios[f]);
  printf("\n");
  fflush(stdout);
}

static bool products(const table *t) {
  double logs[FIGURES] = {0}, ratios[FIGURES];
  int counted[FIGURES] = {0};
  size_t shape_count;
  const bench_shape *shapes = shapes_of(t, &shape_count);
  product_figure list[FIGURES];
  const int count = list_figures(list);
  bench_gemm_peers.load(t->settings->threads);
  if (t->settings->text) {
    printf("products, ratios by shape");
    for (int f = 0; f < count; f++) printf(f ? " %9s" : "%9s", list[f].label);
    printf("\n");
  }
  for (size_t i = 0; i < shape_count; i++) {
    if (!ratios_of(t, &shapes[i], list, count, ratios)) return false;
    add_shape(t, &shapes[i], list, count, ratios);
    for (int f = 0; f < count; f++)
      if (!isnan(ratios[f])) logs[f] += log(ratios[f]), counted[f]++;
  }
  for (int f = 0; f < count; f++)
    add(t, list[f].name, counted[f] ? exp(logs[f] / counted[f]) : NAN, list[f].goals);
  return true;
}

/* Is the rule right that chooses products in pairs by vendor and family? Their speed over that of products
 * that are widened is above 1 where it chooses them, and below elsewhere. On arm64 it never chooses them, and
 * they are timed where MIXTAPE_BF16_PAIRS asks for them, without a goal. */
static bool add_pairs_rule(const table *t) {
  static const char *const names[2][2] = {{"gemm_bf16_acc32_avx512", "gemm_bf16_acc32_avx512bf16"},
                                          {"gemm_bf16_acc32_neon", "gemm_bf16_acc32_neonbf16"}};
  const uint32_t features = mix_cpu_features();
  const bool arm64 = features & MIX_CPU_NEON, chosen = features & MIX_CPU_BF16_PAIRS;
  const char *const *kernels = names[arm64],
                    *name = arm64 ? "bfloat16 product in pairs (BFMLALB, BFMLALT) / widened to float32"
                                  : "bfloat16 product in pairs (VDPBF16PS) / widened to float32";
  if (!(features & (arm64 ? MIX_CPU_BF16_PAIRS : MIX_CPU_AVX512_BF16))) {
    add(t, name, NAN, EVERYWHERE(0));
    return true;
  }
  bench_product *products[2] = {NULL};
  static bench_candidate runs[2];
  int rounds;
  bool good = true;
  for (int i = 0; i < 2 && good; i++) {
    products[i] = bench_product_by(&quick[0], MIX_BFLOAT16, t->settings->threads, kernels[i]);
    good = products[i] != NULL;
    runs[i] = (bench_candidate){.run = bench_product_run, .context = products[i], .pause = true};
  }
  good = good && bench_interleave(runs, 2, t->settings->quick ? 0.2 : 3, &rounds);
  if (good) add(t, name, bench_ratio(&runs[0], &runs[1], rounds), chosen ? EVERYWHERE(1) : AT_MOST(1));
  for (int i = 0; i < 2; i++) bench_product_free(products[i]);
  return good;
}

/* ---- updates ---- */

/* Time of a float32 RMSprop update that writes the weight's 16-bit copy too, over one that does not. */
static bool copy_ratio(const table *t, double *ratio) {
  const int64_t rows = t->settings->quick ? 1024 : 4096;
  mix_generator *generator = mix_generator_new(3);
  mix_tensor *gradient = mix_random_uniform(generator, MIX_SHAPE(rows, 4096), MIX_FLOAT32);
  static bench_update_step x[2];
  static bench_candidate runs[2];
  for (int i = 0; i < 2; i++) {
    if (!bench_update_prepare(&x[i], mix_rmsprop(), gradient, i == 1)) return false;
    runs[i] = (bench_candidate){.run = bench_update_run, .context = &x[i]};
  }
  int rounds;
  if (!bench_interleave(runs, 2, t->settings->quick ? 0.3 : 3, &rounds)) return false;
  *ratio = bench_ratio(&runs[1], &runs[0], rounds);
  return true;
}

bool bench_figures(const bench_settings *settings) {
  table t = {.settings = settings,
             .machine = machine_in_force(),
             .rows = json_array(),
             .memory = json_array(),
             .products = json_array()};
  mix_json_set(settings->json, "figures",
               json_pack("{s:s, s:o, s:o, s:o}", "goals_for", machine_names[t.machine], "rows", t.rows,
                         "memory_plan", t.memory, "products", t.products));
  if (settings->text)
    printf("\nfigures, goals for a processor with %s; speeds as ratios\n", machine_names[t.machine]);
  double copy;
  if (!steps(&t) || !products(&t) || !add_pairs_rule(&t) || !copy_ratio(&t, &copy)) return false;
  add(&t, "RMSprop with the 16-bit copy, time / that of the float32 update", copy, AT_MOST(1.1));
  return mix_set_global_policy("float32") == MIX_OK;
}
