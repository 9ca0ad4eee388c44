/* Table memory: what a training step costs under budgets of memory (mix_set_memory_budget): bytes of its plan
 * and time, over the plan without one, interleaved. The last lines are the guides' promise: mixed precision
 * halves the memory. */
#include "tables.h"

#include "base/error.h"
#include "base/json.h"
#include <stdlib.h>
#include <string.h>

enum {
  SHARES = 5,
  STEPS = SHARES + 3, /* without a budget, the promise, the least */
  MAX_ARGUMENTS = 16,
  LSTM_UNITS = 256,
  LSTM_STEPS = 128,
  LSTM_FEATURES = 128,
  CLASSES = 10
};

/* A model of the program `mixtape`, by its arguments, or the LSTM. */
typedef struct subject {
  const char *name, *policy, *arguments[MAX_ARGUMENTS];
  int64_t batch;
  bool lstm;
  double seconds;    /* of measuring */
  const char *state; /* of the optimizer; NULL: float32 */
} subject;

#define STATE "bfloat16-stochastic"
static const subject subjects[] = {
    {"guide, 4096 units", "float32", {"--units", "4096"}, 128, false, 3},
    {"guide, 4096 units", "mixed_float16", {"--units", "4096"}, 128, false, 3},
    {"guide, 4096 units", "float32", {"--units", "4096"}, 8192, false, 40},
    {"guide, 4096 units", "mixed_float16", {"--units", "4096"}, 8192, false, 40},
    {"guide, 4096 units", "mixed_float16", {"--units", "4096"}, 128, false, 3, STATE},
    {"guide, 4096 units", "mixed_float16", {"--units", "4096"}, 8192, false, 40, STATE},
    {"guide, 4096 units", "bfloat16", {"--units", "4096"}, 8192, false, 40, STATE},
    {"ResNet-50, 224x224", "mixed_float16", {"--model", "resnet50"}, 8, false, 60},
    {"Transformer, 6 of 512, length 512",
     "mixed_float16",
     {"--model", "transformer", "--length", "512", "--classes", "1000"},
     4,
     false,
     30},
    {"LSTM, 256 units, 128 steps", "mixed_float16", {NULL}, 64, true, 5},
};
static const subject quick_subjects[] = {
    {"guide, 512 units", "float32", {"--units", "512"}, 128, false, 0.3},
    {"guide, 512 units", "mixed_float16", {"--units", "512"}, 128, false, 0.3},
    {"guide, 512 units", "float32", {"--units", "512"}, 1024, false, 0.5},
    {"guide, 512 units", "mixed_float16", {"--units", "512"}, 1024, false, 0.5},
    {"guide, 512 units", "mixed_float16", {"--units", "512"}, 128, false, 0.3, STATE},
    {"guide, 512 units", "mixed_float16", {"--units", "512"}, 1024, false, 0.5, STATE},
    {"guide, 512 units", "bfloat16", {"--units", "512"}, 1024, false, 0.5, STATE},
    {"ResNet-50, 64x64", "mixed_float16", {"--model", "resnet50", "--image-size", "64"}, 2, false, 2},
    {"Transformer, 2 of 128, length 64",
     "mixed_float16",
     {"--model", "transformer", "--layers", "2", "--units", "128", "--length", "64", "--classes", "1000"},
     4,
     false,
     1},
    {"LSTM, 256 units, 128 steps", "mixed_float16", {NULL}, 8, true, 1},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };
_Static_assert(sizeof quick_subjects == sizeof subjects, "the same rows");

typedef struct step {
  mix_model *model;
  cli_part part;
  size_t budget;
  mix_plan_report report;
} step;

static mix_model *lstm(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LSTM_STEPS, LSTM_FEATURES));
  mix_tensor *x = mix_call(mix_dense(CLASSES), mix_call(mix_lstm(LSTM_UNITS), inputs));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  return mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam()) ==
                 MIX_OK
             ? model
             : NULL;
}

/* Makes the model under its policy, and its batch. */
static bool prepare(const subject *s, step *made) {
  cli_options options;
  char *arguments[MAX_ARGUMENTS + 2] = {"bench"};
  int count = 1;
  for (int i = 0; s->arguments[i]; i++) arguments[count++] = (char *)s->arguments[i];
  *made = (step){.model = NULL};
  if (mix_set_global_policy(s->policy) != MIX_OK || cli_parse("bench", CLI_BENCH, count, arguments, &options))
    return false;
  options.policy = s->policy;
  options.optimizer_state = s->state;
  if (s->lstm) {
    made->model = lstm();
    mix_generator *generator = mix_generator_new(1);
    made->part.x = mix_random_uniform(generator, MIX_SHAPE(s->batch, LSTM_STEPS, LSTM_FEATURES), MIX_FLOAT32);
    made->part.y = mix_fill(MIX_SHAPE(s->batch), 3, MIX_INT64);
    return made->model && made->part.y;
  }
  made->model = cli_compiled_model(&options, cli_is_guide(&options) ? 784 : 0);
  const cli_invention invention = cli_invention_of(&options, s->batch, 1);
  return made->model && cli_invent_data(made->model, &invention, &made->part);
}

/* The library's own way to a step, because it knows how inputs and labels become arguments. */
static bool run(void *context) {
  const step *s = context;
  bool good = mix_set_memory_budget(s->budget) == MIX_OK;
  MIX_SCOPE { good = good && mix_model_train_on_batch(s->model, s->part.x, s->part.y) != NULL; }
  return good;
}

/* Runs a first step. False without an error: the plan does not fit the budget. */
static bool begin(step *s) {
  if (run(s))
    return mix_function_report(mix_model_train_function(s->model), &s->report, sizeof s->report) == MIX_OK;
  if (mix_error() == MIX_MEMORY_ERROR) mix_error_clear();
  return false;
}

/* A first step under the smallest budget that a plan fits, which the error of one byte has. */
static bool begin_least(step *s) {
  char message[2048];
  const char *found;
  step try = *s;
  try.budget = 1;
  if (run(&try) || mix_error() != MIX_MEMORY_ERROR) return false;
  mix_error_take(message, sizeof message);
  found = strstr(message, "that was found is ");
  if (!found || sscanf(found, "that was found is %zu bytes", &s->budget) != 1) {
    fprintf(stderr, "bench: no smallest budget in \"%s\"\n", message);
    return false;
  }
  return begin(s);
}

/* "mixed_float16, bf16" where the optimizer's state is in 16 bits. */
static const char *policy_text(const subject *s) {
  static char text[32];
  snprintf(text, sizeof text, "%s%s", s->policy, s->state ? ", bf16" : "");
  return text;
}

static void print_row(const bench_settings *settings, const subject *s, const char *budget, const step *row,
                      const step *plain, double time, json_t *rows) {
  const double share = (double)row->report.peak_bytes / (double)plain->report.peak_bytes,
               arena = (double)row->report.arena_bytes / (double)plain->report.arena_bytes;
  mix_json_append(rows, json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:f, s:f, s:f, s:i, s:I}", "model", s->name,
                                  "policy", s->policy, "optimizer_state", s->state ? s->state : "float32",
                                  "batch_size", (json_int_t)s->batch, "budget", budget, "plan_bytes",
                                  (json_int_t)row->report.peak_bytes, "share", share, "arena_share", arena,
                                  "time_ratio", time, "recomputed_nodes", row->report.recomputed_nodes,
                                  "recomputed_bytes", (json_int_t)row->report.recomputed_bytes));
  if (settings->text)
    printf("%-34s %-22s %6lld %7s %10.1f %7.3f %7.3f %9.3f %6d\n", s->name, policy_text(s),
           (long long)s->batch, budget, (double)row->report.peak_bytes / (1 << 20), share, arena, time,
           row->report.recomputed_nodes);
}

/* A budget: a share of the plan's bytes, or what leaves that share of its arena. */
typedef struct share {
  const char *name;
  double part;
  bool of_arena;
} share;
static const share shares[SHARES] = {{"75 %", 0.75, false},
                                     {"50 %", 0.5, false},
                                     {"35 %", 0.35, false},
                                     {"arena/2", 0.5, true},
                                     {"arena.3", 0.3, true}};

static size_t budget_of(const share *s, const mix_plan_report *plain) {
  const double bytes = (double)plain->peak_bytes, arena = (double)plain->arena_bytes;
  return (size_t)(s->of_arena ? bytes - (1 - s->part) * arena : s->part * bytes);
}

/* The steps of one subject: without a budget, under shares of that plan, and the least. Leaves out those that
 * do not fit. `half_of`: bytes of float32's plan, for one more row; 0: none. */
static bool measure(const bench_settings *settings, const subject *s, size_t *plain_bytes, size_t half_of,
                    json_t *rows) {
  static bench_candidate runs[STEPS];
  static step steps[STEPS];
  const char *names[STEPS] = {"100 %"};
  int count = 1, rounds;
  if (!prepare(s, &steps[0]) || !begin(&steps[0])) return false;
  *plain_bytes = steps[0].report.peak_bytes;
  for (int i = 0; i < SHARES; i++) {
    steps[count] = steps[0];
    steps[count].budget = budget_of(&shares[i], &steps[0].report);
    if (begin(&steps[count]))
      names[count++] = shares[i].name;
    else if (mix_failed())
      return false;
    else if (settings->text)
      printf("%-34s %-22s %6lld %7s %10s\n", s->name, policy_text(s), (long long)s->batch, shares[i].name,
             "no plan");
  }
  if (half_of) {
    steps[count] = steps[0];
    steps[count].budget = half_of / 2;
    if (begin(&steps[count])) names[count++] = "promise";
    if (mix_failed()) return false;
  }
  steps[count] = steps[0];
  if (!begin_least(&steps[count])) return false;
  names[count++] = "least";
  for (int i = 0; i < count; i++) runs[i] = (bench_candidate){.run = run, .context = &steps[i]};
  if (!bench_interleave(runs, count, s->seconds, &rounds)) return false;
  for (int i = 0; i < count; i++)
    print_row(settings, s, names[i], &steps[i], &steps[0], 1 / bench_ratio(&runs[0], &runs[i], rounds), rows);
  if (half_of && settings->text)
    printf("  the guides' promise: the least is %.3f of float32's plan of %.1f MiB\n"
           "  (goal <=0.5, for <=1.1 of the time)\n",
           (double)steps[count - 1].report.peak_bytes / (double)half_of, (double)half_of / (1 << 20));
  return true;
}

/* Bytes of the same model's plan under float32, measured before; 0: there is none. */
static size_t float32_plan(const subject *list, int i, const size_t *plain_bytes) {
  for (int k = 0; k < i; k++)
    if (!strcmp(list[k].policy, "float32") && !strcmp(list[k].name, list[i].name) &&
        list[k].batch == list[i].batch)
      return plain_bytes[k];
  return 0;
}

bool bench_memory(const bench_settings *settings) {
  const subject *list = settings->quick ? quick_subjects : subjects;
  json_t *rows = json_array();
  size_t plain_bytes[SUBJECTS];
  bool good = true;
  mix_json_set(settings->json, "memory", rows);
  if (settings->text)
    printf("\ntraining steps under budgets of memory: the plan's bytes and the time over those without one\n"
           "%-34s %-22s %6s %7s %10s %7s %7s %9s %6s\n",
           "model", "policy, state", "batch", "budget", "plan MiB", "share", "arena", "time", "again");
  for (int i = 0; i < SUBJECTS && good; i++) {
    const size_t half_of = float32_plan(list, i, plain_bytes);
    MIX_SCOPE { good = measure(settings, &list[i], &plain_bytes[i], half_of, rows); }
    fflush(stdout);
  }
  mix_set_memory_budget(0);
  return mix_set_global_policy("float32") == MIX_OK && good;
}
