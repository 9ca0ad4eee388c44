/* Table compile: steps with and without the compiler's passes and under jit_compile, a rewritten model beside
 * the same model under a policy, and the time of compilation by size of the graph. */
#include "tables.h"
#include "amp/rewrite.h"
#include "base/clock.h"
#include <stdlib.h>
#include <time.h>

enum { WIDTH = 784, CLASSES = 10, GROUP = 3, POLICIES = 3 };

static const char *const policies[POLICIES] = {"float32", "mixed_float16", "mixed_bfloat16"};
static const char all_passes[] =
    "amp,remove_identities,simplify_casts,fold_transposes,sink_broadcasts,constant_fold,cse,dce,"
    "select_to_predicate,cache_weight_casts,expand_add_n,row_moments,fuse,fuse_epilogues,inplace,memory_plan";

/* A captured function and the environment in which it is called. Each environment has a plan of its own. */
typedef struct candidate {
  const char *label, *disabled, *rewrite;
  mix_function *function;
  mix_list *arguments;
  mix_plan_report report;
} candidate;

static bool in_environment(const candidate *x) {
  if (x->disabled)
    setenv("MIXTAPE_DISABLE_PASSES", x->disabled, 1);
  else
    unsetenv("MIXTAPE_DISABLE_PASSES");
  return mix_set_graph_rewrite(x->rewrite) == MIX_OK;
}

static bool no_rewrite(void) {
  if (mix_graph_rewrite_enabled() && mix_disable_mixed_precision_graph_rewrite() != MIX_OK) return false;
  return mix_set_graph_rewrite(NULL) == MIX_OK;
}

static bool run(void *context) {
  candidate *x = context;
  bool good = in_environment(x);
  MIX_SCOPE { good = good && mix_function_call(x->function, x->arguments) != NULL; }
  return good;
}

static bool prepared(candidate *x) {
  return run(x) && mix_function_report(x->function, &x->report, sizeof x->report) == MIX_OK;
}

/* ---- the guide's step ---- */

static mix_list *random_batch(int64_t rows) {
  int64_t *labels = malloc(sizeof *labels * (size_t)rows);
  if (!labels) return NULL;
  for (int64_t i = 0; i < rows; i++) labels[i] = i * 7 % CLASSES;
  mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(rows, WIDTH), MIX_FLOAT32);
  mix_tensor *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(rows));
  free(labels);
  return mix_evaluate(1, &x) == MIX_OK ? mix_list_of(x, y) : NULL;
}

static mix_model *guide(const char *policy, const char *rewrite, int64_t units, bool jit) {
  cli_options options;
  char *arguments[] = {"bench", NULL};
  if (cli_parse("bench", CLI_BENCH, 1, arguments, &options)) return NULL;
  options.units = units;
  options.policy = policy;
  options.graph_rewrite = rewrite;
  options.jit_compile = jit;
  if (!no_rewrite() || mix_set_global_policy(policy) != MIX_OK) return NULL;
  mix_model *model = cli_build_named_model(&options, WIDTH);
  return model && cli_compile(&options, model) == MIX_OK ? model : NULL;
}

static bool guide_step(candidate *x, const char *policy, int64_t units, bool jit, mix_list *batch) {
  mix_model *model = guide(policy, x->rewrite, units, jit);
  if (!model || !in_environment(x) ||
      !mix_model_train_on_batch(model, mix_list_get(batch, 0), mix_list_get(batch, 1)))
    return false;
  x->function = mix_model_train_function(model);
  x->arguments = batch;
  return prepared(x);
}

/* ---- LayerNormalization, gelu, Dropout: the chain and its gradients ---- */

typedef struct chain {
  mix_layer *layers[3];
} chain;

static mix_list *chain_body(void *context, mix_list *arguments) {
  chain *c = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_list_get(arguments, 0), *y = x;
  mix_tape_watch(tape, x);
  for (int i = 0; i < 3; i++) y = mix_call(c->layers[i], y, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *sources = mix_layer_trainable_weights(c->layers[0]);
  mix_list *given = mix_list_of(x);
  for (int i = 0; sources && i < mix_list_count(sources); i++)
    mix_list_append(given, mix_list_get(sources, i));
  mix_list *gradients =
      mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), given);
  if (gradients) mix_list_append(gradients, y);
  return gradients;
}

static bool chain_step(candidate *x, const char *policy, bool jit, int64_t rows, int64_t width) {
  if (!no_rewrite() || mix_set_global_policy(policy) != MIX_OK || !in_environment(x)) return false;
  chain *c = calloc(1, sizeof *c); /* never freed: a few bytes a candidate */
  if (!c) return false;
  *c = (chain){
      .layers = {mix_layer_normalization(.name = NULL), mix_activation("gelu"), mix_dropout(.rate = 0.1)}};
  for (int i = 0; i < 3; i++) mix_retain(c->layers[i]);
  const mix_dtype dtype = mix_policy_compute_dtype(mix_global_policy());
  mix_generator *generator = mix_generator_new(5);
  mix_tensor *data[2];
  for (int i = 0; i < 2; i++)
    data[i] = mix_cast(mix_random_normal(generator, MIX_SHAPE(rows, width), MIX_FLOAT32), dtype);
  if (mix_evaluate(2, data) != MIX_OK) return false;
  x->function = mix_function_new(chain_body, c, .name = "chain", .jit_compile = jit);
  x->arguments = mix_list_of(data[0], data[1]);
  return prepared(x);
}

/* ---- tables ---- */

static bool print_rows(const bench_settings *settings, json_t *results, const char *title,
                       candidate *candidates, int count, int group) {
  bench_candidate runs[BENCH_MAX_CANDIDATES];
  int rounds;
  for (int i = 0; i < count; i++) runs[i] = (bench_candidate){.run = run, .context = &candidates[i]};
  if (!bench_interleave(runs, count, settings->quick ? 1 : 6, &rounds)) return false;
  if (settings->text)
    printf("\n%s; %d interleaved rounds\n%-34s %11s %11s %9s %6s %9s %11s\n", title, rounds, "", "median ms",
           "best ms", "speed", "steps", "barriers", "arena KiB");
  json_t *rows = json_array();
  for (int i = 0; i < count; i++) {
    const bench_candidate *first = &runs[i / group * group];
    const double ratio = bench_ratio(first, &runs[i], rounds);
    const mix_plan_report *r = &candidates[i].report;
    json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:I}", "case", candidates[i].label,
                                          "median_seconds", runs[i].median, "best_seconds", runs[i].best,
                                          "speed", ratio, "steps", r->nodes, "barriers", r->barriers,
                                          "arena_bytes", (json_int_t)r->arena_bytes));
    if (settings->text)
      printf("%-34s %11.4f %11.4f %8.2fx %6d %9d %11.1f\n", candidates[i].label, 1e3 * runs[i].median,
             1e3 * runs[i].best, ratio, r->nodes, r->barriers, (double)r->arena_bytes / 1024);
  }
  unsetenv("MIXTAPE_DISABLE_PASSES");
  return json_array_append_new(
             results, json_pack("{s:s, s:i, s:o}", "table", title, "rounds", rounds, "rows", rows)) == 0 &&
         no_rewrite();
}

static const char *label_of(const char *policy, int form) {
  static char labels[POLICIES * GROUP][64];
  static int next;
  static const char *const forms[GROUP] = {"without passes", "with passes", "jit_compile"};
  char *text = labels[next++ % (POLICIES * GROUP)];
  snprintf(text, sizeof *labels, "%s, %s", policy, forms[form]);
  return text;
}

/* Each policy without passes, with passes, and under jit_compile. */
static bool bench_passes(const bench_settings *settings, json_t *results, bool chains, int64_t rows,
                         int64_t size) {
  candidate candidates[POLICIES * GROUP] = {0};
  mix_list *batch = chains ? NULL : random_batch(rows);
  for (int i = 0; i < POLICIES * GROUP; i++) {
    const char *policy = policies[i / GROUP];
    const int form = i % GROUP;
    candidates[i] = (candidate){.label = label_of(policy, form), .disabled = form ? NULL : all_passes};
    const bool good = chains ? chain_step(&candidates[i], policy, form == 2, rows, size)
                             : batch && guide_step(&candidates[i], policy, size, form == 2, batch);
    if (!good) return false;
  }
  char title[128];
  snprintf(title, sizeof title,
           chains ? "LayerNormalization, gelu, Dropout on (%lld, %lld), forward and backward"
                  : "step of the guide's model, batch %lld, %lld units",
           (long long)rows, (long long)size);
  return print_rows(settings, results, title, candidates, POLICIES * GROUP, GROUP);
}

/* A float32 model after the graph rewrite, beside the same model under the policy. */
static bool bench_rewritten(const bench_settings *settings, json_t *results, int64_t rows, int64_t units) {
  candidate candidates[] = {{.label = "mixed_float16"},
                            {.label = "float32 rewritten to float16", .rewrite = "float16"},
                            {.label = "mixed_bfloat16"},
                            {.label = "float32 rewritten to bfloat16", .rewrite = "bfloat16"}};
  mix_list *batch = random_batch(rows);
  for (int i = 0; i < 4; i++)
    if (!batch || !guide_step(&candidates[i], candidates[i].rewrite ? "float32" : candidates[i].label, units,
                              false, batch))
      return false;
  char title[128];
  snprintf(title, sizeof title, "graph rewrite beside the policy: the guide's model, batch %lld, %lld units",
           (long long)rows, (long long)units);
  return print_rows(settings, results, title, candidates, 4, 2);
}

/* ---- time of compilation ---- */

/* Time to capture and compile the guide's step: that of the first call of a built model, less that of a later
 * call. */
static bool bench_first_call(const bench_settings *settings, json_t *results) {
  enum { RUNS = 15 };
  mix_list *batch = random_batch(128);
  if (settings->text && batch)
    printf("\nguide's step, 64 units, batch 128: capture and compilation; a call that finds its plan\n");
  for (int p = 0; p < POLICIES; p++) {
    /* hit: the best of several calls; other work on the machine disturbs it least. */
    double first[RUNS], hit[RUNS];
    for (int i = 0; i < RUNS; i++) {
      mix_model *model = batch ? guide(policies[p], NULL, 64, false) : NULL;
      mix_tensor *x = mix_list_get(batch, 0), *y = mix_list_get(batch, 1);
      if (!model) return false;
      double begin = bench_now();
      if (!mix_model_train_on_batch(model, x, y)) return false;
      first[i] = bench_now() - begin;
      hit[i] = first[i];
      for (int j = 0; j < 10; j++) {
        begin = bench_now();
        if (!mix_model_train_on_batch(model, x, y)) return false;
        const double seconds = bench_now() - begin;
        if (seconds < hit[i]) hit[i] = seconds;
      }
      first[i] -= hit[i];
    }
    const double median = bench_median(first, RUNS), found = bench_median(hit, RUNS);
    json_array_append_new(results, json_pack("{s:s, s:s, s:f, s:f, s:f}", "table", "compilation", "policy",
                                             policies[p], "seconds", median, "best_seconds", first[0],
                                             "hit_seconds", found));
    if (settings->text)
      printf("%-34s %8.2f ms (best %.2f); found again: %.3f ms, the step included\n", policies[p],
             1e3 * median, 1e3 * first[0], 1e3 * found);
  }
  return true;
}

/* A chain of that many Dense layers, forward and backward, through all passes. */
static mix_list *deep_body(void *context, mix_list *arguments) {
  const int64_t layers = *(const int64_t *)context;
  mix_tensor *x = mix_list_get(arguments, 0), *w = mix_list_get(arguments, 1),
             *bias = mix_list_get(arguments, 2), *y = x;
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  for (int64_t i = 0; i < layers; i++)
    y = mix_relu(
        mix_bias_add(mix_matmul(mix_cast(y, MIX_FLOAT16), mix_cast(w, MIX_FLOAT16), false, false), bias));
  mix_tape_end(tape);
  return mix_tape_gradient(tape, y, mix_list_of(x));
}

static bool bench_growth(const bench_settings *settings, json_t *results) {
  static const int64_t sizes[] = {100, 1000, 10000};
  for (int i = 0; i < 3 - settings->quick; i++) {
    double seconds = 0;
    mix_plan_report report = {0};
    MIX_SCOPE {
      mix_tensor *x = mix_fill(MIX_SHAPE(4, 4), 0.5, MIX_FLOAT16),
                 *bias = mix_fill(MIX_SHAPE(4), 0, MIX_FLOAT16);
      mix_function *function = mix_function_new(deep_body, (void *)(uintptr_t)&sizes[i], .name = "deep");
      mix_list *arguments = mix_list_of(x, mix_fill(MIX_SHAPE(4, 4), 0.25, MIX_FLOAT16), bias);
      const double begin = bench_now();
      mix_function_call(function, arguments);
      seconds = bench_now() - begin;
      mix_function_report(function, &report, sizeof report);
    }
    if (mix_error() != MIX_OK) return false;
    json_array_append_new(results, json_pack("{s:s, s:i, s:f}", "table", "growth", "nodes",
                                             report.captured_nodes, "seconds", seconds));
    if (settings->text)
      printf("%s%7d nodes captured, compiled and run once: %9.2f ms, %.2f us a node\n", i ? "" : "\n",
             report.captured_nodes, 1e3 * seconds, 1e6 * seconds / report.captured_nodes);
  }
  return true;
}

/* The guide's layers, `layers` times, compiled under a policy with 16 bits. */
static mix_model *deep_model(int layers) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(16)), *x = inputs;
  for (int i = 0; i < layers; i++) x = mix_call(mix_dense(16, .activation = "relu"), x);
  mix_model *model =
      mix_model_new(inputs, mix_call(mix_dense(CLASSES, .activation = "softmax", .dtype = "float32"), x));
  return mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop()) ==
                 MIX_OK
             ? model
             : NULL;
}

/* Processor seconds of a first step under a budget (0: none), of which less than 0.01 are the step. */
static bool first_step(int layers, size_t budget, double *seconds, mix_plan_report *report) {
  enum { ROWS = 512 };
  bool good = mix_set_memory_budget(budget) == MIX_OK;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(ROWS, 16), 0.5, MIX_FLOAT32),
               *y = mix_fill(MIX_SHAPE(ROWS), 3, MIX_INT64);
    mix_model *model = good ? deep_model(layers) : NULL;
    const double begin = mix_clock(CLOCK_PROCESS_CPUTIME_ID);
    good = model && mix_model_train_on_batch(model, x, y) != NULL;
    *seconds = mix_clock(CLOCK_PROCESS_CPUTIME_ID) - begin;
    good = good && mix_function_report(mix_model_train_function(model), report, sizeof *report) == MIX_OK;
  }
  return mix_set_memory_budget(0) == MIX_OK && good;
}

/* What a budget adds to the time of compilation. */
static bool bench_planning(const bench_settings *settings, json_t *results) {
  enum { LAYERS = 195, RUNS = 5 }; /* 10,000 nodes */
  static const double shares[] = {1, 0.8, 0.6, 0.5, 0.35};
  double plain = 0;
  mix_plan_report report = {0}, first = {0};
  if (mix_set_global_policy("mixed_float16") != MIX_OK) return false;
  for (int i = 0; i < 5; i++) {
    double seconds[RUNS];
    const size_t budget = i ? first.peak_bytes - (size_t)((1 - shares[i]) * (double)first.arena_bytes) : 0;
    for (int r = 0; r < RUNS; r++)
      if (!first_step(settings->quick ? LAYERS / 10 : LAYERS, budget, &seconds[r], &report)) return false;
    const double median = bench_median(seconds, RUNS);
    if (!i) plain = median, first = report;
    json_array_append_new(results, json_pack("{s:s, s:i, s:f, s:f, s:f}", "table", "planning", "nodes",
                                             report.captured_nodes, "share", shares[i], "seconds", median,
                                             "more", median - plain));
    if (settings->text && !i)
      printf("\n%d nodes captured and compiled: %.3f s of the processor\n", report.captured_nodes, median);
    else if (settings->text)
      printf("  for a budget that leaves %.2f of the arena: %.3f s more (goal <=0.2 of 10,000 nodes)\n",
             shares[i], median - plain);
  }
  return mix_set_global_policy("float32") == MIX_OK;
}

/* The graph rewrite alone, on chains of ops of all its lists. */
static bool rewrite_of(int nodes, double *seconds) {
  static const char *const ops[] = {"MatMul",  "Relu", "Tanh", "Exp",    "Identity",
                                    "Reshape", "Add",  "Sin",  "Conv2D", "Sqrt"};
  enum {
    FLOATS = 1 << MIX_AMP_DTYPE_FLOAT16 | 1 << MIX_AMP_DTYPE_BFLOAT16 | 1 << MIX_AMP_DTYPE_FLOAT32 |
             1 << MIX_AMP_DTYPE_FLOAT64
  };
  mix_amp_graph *graph = mix_amp_graph_new("chains");
  static const int zero;
  for (int i = 0; graph && i < nodes; i++) {
    char name[32];
    snprintf(name, sizeof name, "n%d", i);
    const mix_amp_node_spec node = {
        .name = name, .op = i ? ops[((uint32_t)i * 2654435761u >> 20) % 10] : "Const", .input_count = i > 0};
    const mix_amp_type_spec type = {.id = "T",
                                    .dtype = MIX_AMP_DTYPE_FLOAT32,
                                    .allowed = FLOATS,
                                    .kernel = FLOATS,
                                    .input_count = i > 0,
                                    .output_count = 1,
                                    .inputs = &zero,
                                    .outputs = &zero};
    if (mix_amp_graph_add_node(graph, &node) < 0 || !mix_amp_graph_add_type(graph, &type)) return false;
    if (i && !mix_amp_graph_connect(graph, i, 0, i % 1000 ? i - 1 : 0, 0)) return false;
  }
  if (!graph || !mix_amp_graph_finish(graph)) return false;
  const mix_amp_options options = {
      .mode = MIX_AMP_CUDA_FLOAT16, .has_gpu = true, .architecture = {8, 0}, .cuda = 11050, .cudnn = 8302};
  const double begin = bench_now();
  const mix_amp_result *result = mix_amp_rewrite(graph, &options);
  *seconds = bench_now() - begin;
  return result && result->status == MIX_AMP_OK;
}

static bool bench_rewrite(const bench_settings *settings, json_t *results) {
  enum { RUNS = 5 };
  static const int sizes[] = {1000, 10000, 100000};
  for (int i = 0; i < 3; i++) {
    double seconds[RUNS];
    bool good = true;
    for (int r = 0; r < RUNS && good; r++)
      MIX_SCOPE { good = rewrite_of(sizes[i], &seconds[r]); }
    if (!good) return false;
    const double median = bench_median(seconds, RUNS);
    json_array_append_new(
        results, json_pack("{s:s, s:i, s:f}", "table", "rewrite", "nodes", sizes[i], "seconds", median));
    if (settings->text)
      printf("%sgraph rewrite of %6d nodes: %8.2f ms, %.2f us a node\n", i ? "" : "\n", sizes[i],
             1e3 * median, 1e6 * median / sizes[i]);
  }
  return true;
}

bool bench_compile(const bench_settings *settings) {
  json_t *results = json_array();
  json_object_set_new(settings->json, "compile", results);
  const int64_t units = settings->units ? settings->units : 64,
                batch = settings->batch ? settings->batch : 128;
  bool good = true;
  MIX_SCOPE { good = bench_passes(settings, results, false, batch, units); }
  if (good)
    MIX_SCOPE { good = bench_passes(settings, results, true, 512, 1024); }
  if (good)
    MIX_SCOPE { good = bench_rewritten(settings, results, batch, units); }
  if (good && !settings->quick)
    MIX_SCOPE { good = bench_rewritten(settings, results, 1024, 1024); }
  if (good)
    MIX_SCOPE { good = bench_first_call(settings, results); }
  if (good) good = bench_planning(settings, results);
  if (good)
    MIX_SCOPE { good = bench_growth(settings, results); }
  if (good)
    MIX_SCOPE { good = bench_rewrite(settings, results); }
  if (good && settings->text)
    printf(
        "speed: the time of the first row of its policy (of the policy's model) over this one's, median of "
        "the rounds.\n");
  unsetenv("MIXTAPE_DISABLE_PASSES");
  return good && no_rewrite() && mix_set_global_policy("float32") == MIX_OK;
}
