/* Table steps: the training step of the guide's model in each policy, beside the step's products alone, and
 * the memory of its plan. */
#include "base/json.h"
#include "cli/bench/bench.h"
#include "cli/bench/comparison.h"
#include "cli/bench/step_candidate.h"

enum { MAX_POLICIES = 4, PRODUCTS = 8 };

typedef struct configuration {
  int64_t units, batch;
} configuration;

typedef struct candidate {
  bench_step step;
  mix_function *products;
  mix_list *product_arguments;
} candidate;

static bool run_products(void *context) {
  const candidate *x = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(x->products, x->product_arguments) != NULL; }
  return good;
}

/* The products of a step: forward, gradients of all inputs but the first layer's, gradients of kernels.
 * Arguments: input (batch, 784), outputs and gradients of the two hidden layers (batch, units), gradient of
 * the logits (batch, 10), the three kernels. */
static mix_list *products_body(void *context, mix_list *arguments) {
  mix_tensor *a[PRODUCTS + 1];
  for (int i = 0; i <= PRODUCTS; i++) a[i] = mix_list_get(arguments, i);
  enum { X, H1, H2, D1, D2, D3, W1, W2, W3 };
  return mix_list_of(mix_matmul(a[X], a[W1], false, false), mix_matmul(a[H1], a[W2], false, false),
                     mix_matmul(a[H2], a[W3], false, false), mix_matmul(a[D3], a[W3], false, true),
                     mix_matmul(a[D2], a[W2], false, true), mix_matmul(a[H2], a[D3], true, false),
                     mix_matmul(a[H1], a[D2], true, false), mix_matmul(a[X], a[D1], true, false));
}

static mix_list *product_arguments(mix_generator *generator, configuration c, mix_dtype dtype) {
  const mix_shape shapes[] = {
      MIX_SHAPE(c.batch, BENCH_WIDTH), MIX_SHAPE(c.batch, c.units), MIX_SHAPE(c.batch, c.units),
      MIX_SHAPE(c.batch, c.units),     MIX_SHAPE(c.batch, c.units), MIX_SHAPE(c.batch, BENCH_CLASSES),
      MIX_SHAPE(BENCH_WIDTH, c.units), MIX_SHAPE(c.units, c.units), MIX_SHAPE(c.units, BENCH_CLASSES)};
  mix_list *list = mix_list_new(0, NULL);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    mix_tensor *random = mix_cast(mix_random_uniform(generator, shapes[i], MIX_FLOAT32), dtype);
    if (mix_evaluate(1, &random) != MIX_OK) return NULL;
    mix_list_append(list, random);
  }
  return list;
}

static bool prepare(candidate *x, configuration c, mix_list *data, mix_generator *generator) {
  if (!bench_step_prepare(&x->step, c.units, data)) return false;
  x->products = mix_function_new(products_body, NULL, .name = "products", .jit_compile = x->step.jit_compile);
  x->product_arguments = product_arguments(generator, c, mix_policy_compute_dtype(mix_global_policy()));
  return x->product_arguments != NULL;
}

static json_t *row(const candidate *x, const bench_candidate *step, const bench_candidate *products,
                   double ratio, double share) {
  const mix_plan_report *r = &x->step.report;
  return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:I}",
                   "policy", x->step.policy, "step_seconds", step->median, "best_seconds", step->best,
                   "speed_to_float32", ratio, "products_seconds", products->median, "products_best_seconds",
                   products->best, "share_outside_products", share, "first_step_seconds",
                   x->step.first_seconds, "plan_bytes", (json_int_t)r->peak_bytes, "arena_bytes",
                   (json_int_t)r->arena_bytes, "unshared_bytes", (json_int_t)r->unshared_bytes,
                   "process_peak_bytes", (json_int_t)x->step.peak, "nodes", r->nodes, "captured_nodes",
                   r->captured_nodes, "barriers", r->barriers, "copy_bytes", (json_int_t)r->copy_bytes,
                   "least_bytes", (json_int_t)r->least_bytes);
}

static bool one_configuration(const bench_settings *settings, configuration c, json_t *results) {
  static const char *const policies[MAX_POLICIES] = {"float32", "mixed_float16", "mixed_bfloat16", "float64"};
  const int count =
      c.units <= 256 ? MAX_POLICIES : MAX_POLICIES - 1; /* float64 is too slow for larger models */
  static candidate candidates[MAX_POLICIES];
  static bench_candidate runs[2 * MAX_POLICIES];
  mix_generator *generator = mix_generator_new(1);
  mix_list *data = generator ? bench_step_data(generator, c.batch) : NULL;
  for (int i = 0; i < count; i++) {
    candidates[i] =
        (candidate){.step = {.policy = policies[i], .jit_compile = settings->options->jit_compile}};
    if (!data || !prepare(&candidates[i], c, data, generator)) return false;
    runs[2 * i] = (bench_candidate){.run = bench_step_run, .context = &candidates[i].step};
    runs[2 * i + 1] = (bench_candidate){.run = run_products, .context = &candidates[i]};
  }
  int rounds;
  if (!bench_interleave(runs, 2 * count, settings->quick ? 2 : 10, &rounds)) return false;
  if (settings->text)
    printf("\nstep of the guide's model, %lld units, batch %lld; %d interleaved rounds\n"
           "%-15s %11s %11s %9s %11s %9s %10s %11s %11s %11s %6s %8s\n",
           (long long)c.units, (long long)c.batch, rounds, "policy", "median ms", "best ms", "speed",
           "products ms", "outside", "first ms", "plan MiB", "least MiB", "peak MiB", "steps", "barriers");
  json_t *rows = json_array();
  for (int i = 0; i < count; i++) {
    const bench_candidate *step = &runs[2 * i], *products = &runs[2 * i + 1];
    const double ratio = bench_ratio(&runs[0], step, rounds), share = 1 - bench_ratio(products, step, rounds);
    mix_json_append(rows, row(&candidates[i], step, products, ratio, share));
    if (settings->text)
      printf("%-15s %11.4f %11.4f %8.2fx %11.4f %8.0f%% %10.2f %11.2f %11.2f %11.2f %6d %8d\n",
             candidates[i].step.policy, 1e3 * step->median, 1e3 * step->best, ratio, 1e3 * products->median,
             100 * share, 1e3 * candidates[i].step.first_seconds,
             (double)candidates[i].step.report.peak_bytes / (1 << 20),
             (double)candidates[i].step.report.least_bytes / (1 << 20),
             (double)candidates[i].step.peak / (1 << 20), candidates[i].step.report.nodes,
             candidates[i].step.report.barriers);
  }
  return mix_json_append(results,
                         json_pack("{s:I, s:I, s:i, s:o}", "units", (json_int_t)c.units, "batch_size",
                                   (json_int_t)c.batch, "rounds", rounds, "policies", rows));
}

bool bench_steps(const bench_settings *settings) {
  configuration list[] = {{64, 128}, {4096, 128}, {4096, 8192}};
  int count = settings->quick ? 2 : 3;
  if (settings->units || settings->batch) {
    list[0] =
        (configuration){settings->units ? settings->units : 64, settings->batch ? settings->batch : 128};
    count = 1;
  }
  json_t *results = json_array();
  mix_json_set(settings->json, "steps", results);
  bool good = true;
  for (int i = 0; i < count && good; i++) {
    MIX_SCOPE { good = one_configuration(settings, list[i], results); }
    fflush(stdout);
  }
  if (good && settings->text)
    printf(
        "speed: float32's time over this one's, median of the rounds. outside: share of the step beyond its "
        "eight products run alone\n"
        "(element-wise work, reductions, updates, dispatch). plan: memory that the plan counts; peak: "
        "buffers of this model, plan included.\n");
  return good && mix_set_global_policy("float32") == MIX_OK;
}
