/* What ranks train with the optimizer's state divided among them is, bit for bit, what they train without:
 *
 *   equal             weights and state, over optimizers, policies, clipping, averages and accumulation
 *   eager             the same in steps outside of functions
 *   seeds             state in bfloat16 of ranks with different seeds
 *   memory            each rank holds at most 0.6 of the slots of two ranks
 *   budget            the same under a memory budget
 *   checkpoint DIR    runs that go on with the other form of the state
 *   first_part DIR    a run that stops; second_part DIR goes on from there on another number of ranks
 *   changed           the state after loading, gathering, and a change of the form
 *   wrong             errors */
#include "distribute/shard_worker.h"

#include "base/alloc.h"
#include "graph/divided_variable.h"

#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static int failed(const char *what, const char *name) {
  fprintf(stderr, "rank %d of %d: %s: %s%s%s\n", rank, ranks, name, what, mix_error() ? ": " : "",
          mix_error_message());
  return 1;
}
#define CHECK(condition, name)                                                                               \
  if (!(condition)) return failed(#condition, name)

enum { ROWS = 48, FEATURES = 9, TARGETS = 3, BATCH = 16, EPOCHS = 3, SEED = 11 };

/* ---- models ---- */

typedef struct setting {
  const char *name;
  mix_optimizer *(*make)(void);
  const char *policy; /* NULL: float32 */
  bool skips;         /* the first steps overflow */
  bool large;         /* kernels that rows divide well, and no constraint */
  int64_t lora;       /* the rank of its LoRA; 0: none */
} setting;

static mix_optimizer *sgd(void) { return mix_sgd(.learning_rate = 0.01); }
static mix_optimizer *momentum(void) { return mix_sgd(.learning_rate = 0.01, .momentum = 0.9); }
static mix_optimizer *adam(void) { return mix_adam(.learning_rate = 0.01); }
static mix_optimizer *rmsprop(void) {
  return mix_rmsprop(.learning_rate = 0.01, .momentum = 0.5, .centered = true);
}
static mix_optimizer *lamb(void) { return mix_lamb(.learning_rate = 0.01); }
static mix_optimizer *adafactor(void) { return mix_adafactor(.learning_rate = 0.01); }
static mix_optimizer *muon(void) { return mix_muon(.learning_rate = 0.01); }
static mix_optimizer *nadam(void) { return mix_nadam(.learning_rate = 0.01); }
static mix_optimizer *adamw(void) { return mix_adamw(.learning_rate = 0.01, .weight_decay = 0.1); }
static mix_optimizer *by_norm(void) { return mix_adam(.learning_rate = 0.01, .clipnorm = 0.1); }
static mix_optimizer *by_global_norm(void) { return mix_adam(.learning_rate = 0.01, .global_clipnorm = 0.1); }
static mix_optimizer *lamb_global_norm(void) {
  return mix_lamb(.learning_rate = 0.01, .global_clipnorm = 0.1);
}
static mix_optimizer *by_value(void) { return mix_adam(.learning_rate = 0.01, .clipvalue = 0.01); }
static mix_optimizer *averages(void) {
  return mix_adam(.learning_rate = 0.01, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 3);
}
static mix_optimizer *averages_at_end(void) { return mix_sgd(.learning_rate = 0.01, .use_ema = true); }
static mix_optimizer *accumulates(void) {
  return mix_adam(.learning_rate = 0.01, .gradient_accumulation_steps = 2);
}
static mix_optimizer *accumulates_norm(void) {
  return mix_adam(.learning_rate = 0.01, .gradient_accumulation_steps = 2, .global_clipnorm = 0.1);
}
static mix_optimizer *overflows(void) {
  return mix_loss_scale_optimizer(mix_adam(.learning_rate = 0.01), .initial_scale = 0x1p22,
                                  .dynamic_growth_steps = 2);
}
static mix_optimizer *overflows_averages(void) {
  return mix_loss_scale_optimizer(averages(), .initial_scale = 0x1p24, .dynamic_growth_steps = 2);
}
static mix_optimizer *to_nearest(void) { return mix_adam(.learning_rate = 0.01, .state = "bfloat16"); }
static mix_optimizer *stochastic(void) {
  return mix_adam(.learning_rate = 0.01, .state = "bfloat16-stochastic");
}
static mix_optimizer *kahan(void) { return mix_adam(.learning_rate = 0.01, .state = "bfloat16-kahan"); }
static mix_optimizer *adafactor_stochastic(void) {
  return mix_adafactor(.learning_rate = 0.01, .state = "bfloat16-stochastic");
}
static mix_optimizer *muon_kahan(void) { return mix_muon(.learning_rate = 0.01, .state = "bfloat16-kahan"); }
static mix_optimizer *global_norm_stochastic(void) {
  return mix_adam(.learning_rate = 0.01, .global_clipnorm = 0.1, .state = "bfloat16-stochastic");
}
static mix_optimizer *averages_stochastic(void) {
  return mix_adam(.learning_rate = 0.01, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 3,
                  .state = "bfloat16-stochastic");
}
static mix_optimizer *averages_kahan(void) {
  return mix_adam(.learning_rate = 0.01, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 3,
                  .state = "bfloat16-kahan");
}
static mix_optimizer *averages_kahan_at_end(void) {
  return mix_sgd(.learning_rate = 0.01, .use_ema = true, .state = "bfloat16-kahan");
}
static mix_optimizer *accumulates_kahan(void) {
  return mix_adam(.learning_rate = 0.01, .gradient_accumulation_steps = 2, .state = "bfloat16-kahan");
}
static mix_optimizer *accumulates_stochastic(void) {
  return mix_adam(.learning_rate = 0.01, .gradient_accumulation_steps = 2, .state = "bfloat16-stochastic");
}
static mix_optimizer *overflows_stochastic(void) {
  return mix_loss_scale_optimizer(stochastic(), .initial_scale = 0x1p22, .dynamic_growth_steps = 2);
}

static const setting settings[] = {
    {"sgd", sgd},
    {"momentum", momentum},
    {"adam", adam},
    {"rmsprop", rmsprop},
    {"lamb", lamb},
    {"adafactor", adafactor},
    {"muon", muon},
    {"nadam", nadam},
    {"adamw", adamw},
    {"clipnorm", by_norm},
    {"global_clipnorm", by_global_norm},
    {"lamb, global_clipnorm", lamb_global_norm},
    {"clipvalue", by_value},
    {"averages", averages},
    {"averages at the end", averages_at_end},
    {"accumulation", accumulates},
    {"accumulation, global_clipnorm", accumulates_norm},
    {"adam, mixed_float16", adam, "mixed_float16"},
    {"muon, mixed_bfloat16", muon, "mixed_bfloat16"},
    {"clipnorm, mixed_float16", by_norm, "mixed_float16"},
    {"overflow", overflows, "mixed_float16", true},
    {"overflow, averages", overflows_averages, "mixed_float16", true},
    {"LoRA", adam, "mixed_float16", .large = true, .lora = 3},
    {"LoRA, stochastic", stochastic, "mixed_bfloat16", .large = true, .lora = 3},
    {"to nearest, mixed_bfloat16", to_nearest, "mixed_bfloat16"},
    {"to nearest, bfloat16", to_nearest, "bfloat16"},
    {"stochastic, mixed_bfloat16", stochastic, "mixed_bfloat16"},
    {"stochastic, mixed_bfloat16, large", stochastic, "mixed_bfloat16", .large = true},
    {"stochastic, bfloat16", stochastic, "bfloat16"},
    {"stochastic, bfloat16, large", stochastic, "bfloat16", .large = true},
    {"stochastic, overflow", overflows_stochastic, "mixed_float16", true},
    {"stochastic, global_clipnorm", global_norm_stochastic, "bfloat16"},
    {"stochastic, averages", averages_stochastic, "bfloat16"},
    {"stochastic, accumulation", accumulates_stochastic, "bfloat16"},
    {"adafactor, stochastic", adafactor_stochastic, "bfloat16"},
    {"kahan", kahan, "bfloat16"},
    {"kahan, large", kahan, "bfloat16", .large = true},
    {"kahan, averages", averages_kahan, "bfloat16"},
    {"kahan, averages at the end", averages_kahan_at_end, "bfloat16"},
    {"kahan, accumulation", accumulates_kahan, "bfloat16"},
    {"muon, kahan", muon_kahan, "bfloat16"},
};

static mix_tensor *numbers(int64_t rows, int64_t columns, uint64_t seed) {
  mix_tensor *key = mix_tensor_from((const int64_t[]){(int64_t)seed, 1}, MIX_INT64, MIX_SHAPE(2));
  return mix_stateless_normal(key, MIX_SHAPE(rows, columns), MIX_FLOAT32);
}

/* One kernel has a constraint, so that it has an owner; the others are divided by rows where they can be. */
static mix_model *new_model(const setting *s) {
  mix_set_seed(SEED);
  mix_set_global_policy(s->policy ? s->policy : "float32");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(FEATURES));
  mix_tensor *x = mix_call(mix_dense(20, .activation = "relu"), inputs);
  if (!s->large)
    x = mix_call(mix_dense(7, .activation = "tanh", .kernel_constraint = mix_constraint_new("max_norm")), x);
  for (int i = 0; s->large && i < 5; i++) x = mix_call(mix_dense(64, .activation = "tanh"), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(TARGETS, .dtype = "float32"), x));
  if (s->lora) mix_model_enable_lora(model, s->lora);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = s->make());
  return model;
}

static int steps_run; /* by the latest fit */
static void count_step(void *context, const mix_step_record *record) {
  (void)context, (void)record;
  steps_run++;
}

static mix_callback *kept(const char *path) { return mix_backup_and_restore(path, .keep_checkpoint = true); }

static mix_history *fit(mix_model *model, int64_t epochs, int64_t steps, mix_callback *callback) {
  steps_run = 0;
  return mix_model_fit(model, numbers(ROWS, FEATURES, 1), numbers(ROWS, TARGETS, 2), .batch_size = BATCH,
                       .epochs = epochs, .steps = steps, .seed = SEED, .verbose = MIX_SILENT,
                       .on_step = count_step, .callbacks = callback ? mix_list_of(callback) : NULL);
}

static bool shard(bool on) {
  return mix_distribution_shard(mix_distribution_current(), on ? MIX_SHARD_OPTIMIZER : MIX_SHARD_NOTHING) ==
         MIX_OK;
}

/* ---- values ---- */

typedef struct values {
  int count;
  double values[100000];
} values;

static bool add_values(values *v, mix_list *variables) {
  for (int i = 0; i < mix_list_count(variables); i++)
    MIX_SCOPE {
      mix_tensor *value = mix_variable_true_value(mix_list_get(variables, i));
      const int64_t size = value ? mix_shape_size(mix_tensor_shape(value)) : 0;
      if (v->count + size <= (int64_t)(sizeof v->values / sizeof *v->values))
        mix_tensor_read(value, MIX_FLOAT64, v->values + v->count, size);
      v->count += (int)size;
    }
  return mix_error() == MIX_OK && v->count <= (int)(sizeof v->values / sizeof *v->values);
}

/* Weights and state, as they are here. */
static bool read_values(mix_model *model, values *v) {
  v->count = 0;
  return add_values(v, mix_layer_weights(mix_model_layer(model))) &&
         add_values(v, mix_optimizer_variables(mix_model_optimizer(model)));
}

static bool gather(mix_model *model) {
  return mix_optimizer_gather_state(mix_model_optimizer(model), MIX_EVERY_RANK) == MIX_OK;
}

static bool equal(const values *a, const values *b) {
  if (a->count != b->count || !a->count) return false;
  for (int i = 0; i < a->count; i++)
    if (memcmp(&a->values[i], &b->values[i], sizeof *a->values)) {
      fprintf(stderr, "value %d of %d: %.9g without, %.9g divided\n", i, a->count, a->values[i],
              b->values[i]);
      return false;
    }
  return true;
}

static values expected, found;

/* Bytes of divided variables that this rank holds, and that there are in all. */
typedef struct held {
  size_t own, all;
} held;

static held count_bytes(mix_list *variables) {
  held h = {0, 0};
  for (int i = 0; i < mix_list_count(variables); i++) {
    const mix_variable *variable = mix_list_get(variables, i);
    if (!variable->share) continue;
    h.all += (size_t)mix_shape_size(variable->shape) * mix_dtype_size(variable->dtype);
    if (variable->share->part) h.own += mix_memory_bytes(variable->share->part->memory);
    h.own += mix_memory_bytes(variable->memory);
  }
  return h;
}

static held count_state(mix_model *model) {
  return count_bytes(mix_optimizer_variables(mix_model_optimizer(model)));
}

static int equal_of(const setting *s) {
  mix_model *model = new_model(s);
  CHECK(shard(false) && fit(model, EPOCHS, 0, NULL) && read_values(model, &expected), s->name);
  const int64_t skipped = mix_optimizer_skipped_steps(mix_model_optimizer(model));
  CHECK(s->skips ? skipped > 0 && skipped < EPOCHS * ROWS / BATCH : !skipped, s->name);
  model = new_model(s);
  CHECK(shard(true) && fit(model, EPOCHS, 0, NULL), s->name);
  const held state = count_state(model);
  CHECK(s->make == sgd || state.own < state.all, s->name);
  CHECK(gather(model) && read_values(model, &found), s->name);
  CHECK(equal(&expected, &found), s->name);
  return 0;
}

static int all_equal(void) {
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    int code = 1;
    MIX_SCOPE { code = equal_of(&settings[i]); }
    if (code) return code;
  }
  return 0;
}

/* Ranks of different seeds round alike. */
static int seeds(void) {
  for (int divided = 0; divided < 2; divided++)
    MIX_SCOPE {
      static const setting s = {"stochastic", stochastic, "bfloat16"};
      mix_model *model = new_model(&s);
      mix_set_seed(SEED + 1 + (uint64_t)rank);
      CHECK(shard(divided) && fit(model, EPOCHS, 0, NULL) && gather(model), s.name);
      CHECK(read_values(model, &expected), s.name);
      mix_tensor *own = mix_tensor_from(expected.values, MIX_FLOAT64, MIX_SHAPE(expected.count));
      found.count = expected.count;
      CHECK(mix_tensor_read(mix_broadcast(own, 0), MIX_FLOAT64, found.values, found.count) == MIX_OK, s.name);
      CHECK(equal(&expected, &found), s.name);
    }
  return 0;
}

/* ---- steps of one's own ---- */

typedef struct loop {
  mix_model *model;
  mix_tensor *x, *y;
} loop;

static mix_tensor *train(const loop *l, mix_tensor *x, mix_tensor *y) {
  mix_tape *tape = mix_tape_begin();
  mix_tensor *loss = mix_reduce_mean(mix_square(mix_subtract(mix_model_call(l->model, x, .training = 1), y)),
                                     MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_optimizer_minimize(mix_model_optimizer(l->model), loss, tape, mix_model_trainable_variables(l->model));
  return loss;
}

static mix_list *step_body(void *context, mix_list *arguments) {
  return mix_list_of(train(context, mix_list_get(arguments, 0), mix_list_get(arguments, 1)));
}

static int64_t rows_of_rank = 4;

/* Each rank has other rows. */
static mix_tensor *rows_of(int step, int64_t columns, uint64_t seed) {
  return numbers(rows_of_rank, columns, seed + 10 * (uint64_t)step + 1000 * (uint64_t)rank);
}

/* What a rank holds at the end of a loop. */
typedef struct figures {
  mix_plan_report plan;
  held state, masters;
  size_t buffers, peak; /* of the process: more than before the model at the end, and at most */
} figures;

static bool run_loop(const setting *s, bool captured, values *result, figures *f) {
  const size_t before = mix_buffer_bytes();
  mix_buffer_peak_reset();
  loop l = {.model = new_model(s)};
  mix_function *function = mix_function_new(step_body, &l);
  for (int step = 0; step < 4 && !mix_error(); step++)
    MIX_SCOPE {
      mix_tensor *x = rows_of(step, FEATURES, 3), *y = rows_of(step, TARGETS, 4);
      if (captured)
        mix_function_call(function, mix_list_of(x, y));
      else
        train(&l, x, y);
    }
  if (f) {
    f->buffers = mix_buffer_bytes() - before;
    f->peak = mix_buffer_peak() - before;
    mix_function_report(function, &f->plan, sizeof f->plan);
    f->state = count_state(l.model);
    f->masters = count_bytes(mix_model_trainable_variables(l.model));
  }
  return gather(l.model) && read_values(l.model, result);
}

static int own_loop(bool captured) {
  static const setting own[] = {{"adam", adam},
                                {"lamb, global_clipnorm", lamb_global_norm},
                                {"accumulation", accumulates},
                                {"overflow", overflows, "mixed_float16", true},
                                {"stochastic", stochastic, "bfloat16"},
                                {"kahan, accumulation", accumulates_kahan, "bfloat16"}};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    MIX_SCOPE {
      CHECK(shard(false) && run_loop(&own[i], captured, &expected, NULL), own[i].name);
      CHECK(shard(true) && run_loop(&own[i], captured, &found, NULL), own[i].name);
      CHECK(equal(&expected, &found), own[i].name);
    }
  return 0;
}

static bool is_at_most(const char *name, const char *what, double part, double whole, double limit) {
  if (whole > 0 && part <= limit * whole) return true;
  fprintf(stderr, "rank %d: %s: %g of %g bytes of %s, limit %g\n", rank, name, part, whole, what, limit);
  return false;
}

/* Muon's kernels stay whole: of the four large ones a rank of three may have two. */
static int memory_of(const setting *s) {
  figures whole, divided;
  CHECK(shard(false) && run_loop(s, true, &expected, &whole), s->name);
  CHECK(!whole.state.all && !whole.masters.all, s->name);
  CHECK(shard(true) && run_loop(s, true, &found, &divided), s->name);
  const double limit = s->make == muon ? 0.6 : 1.2 / ranks;
  if (!is_at_most(s->name, "state", (double)divided.state.own, (double)divided.state.all, limit)) return 1;
  if (s->policy &&
      !is_at_most(s->name, "masters", (double)divided.masters.own, (double)divided.masters.all, limit))
    return 1;
  /* The plans say the same: what is divided, and the step's own counter. */
  const size_t saved = divided.state.all - divided.state.own + divided.masters.all - divided.masters.own;
  CHECK(whole.plan.variable_bytes - saved + sizeof(int64_t) == divided.plan.variable_bytes, s->name);
  /* So does the process, but for one gradient beside its share, of five that take most: a tenth of what
   * Adam's slots give back. */
  CHECK(divided.buffers + saved * 3 / 4 < whole.buffers && divided.peak < whole.peak, s->name);
  return 0;
}

static int memory(void) {
  static const setting all[] = {{"adam", adam, .large = true},
                                {"muon", muon, .large = true},
                                {"adam, mixed_float16", adam, "mixed_float16", .large = true},
                                {"muon, mixed_bfloat16", muon, "mixed_bfloat16", .large = true}};
  int code = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all && !code; i++)
    MIX_SCOPE { code = memory_of(&all[i]); }
  return code;
}

/* ---- a budget ---- */

/* The smallest budget that is found for the divided step, which depends on the kernels; 0: there is no such
 * error. */
static size_t least_budget(const setting *s) {
  static const char text[] = "the smallest memory budget that was found is ";
  char message[2048];
  figures divided;
  if (mix_set_memory_budget(1) != MIX_OK || !shard(true) || run_loop(s, true, &found, &divided)) return 0;
  mix_error_take(message, sizeof message);
  const char *at = strstr(message, text);
  return at ? strtoull(at + sizeof text - 1, NULL, 10) : 0;
}

/* The same budget on all ranks, which what is divided does not make room for: three quarters of the way from
 * the plain plan to the least. */
static int fits_budget(const setting *s) {
  figures whole, divided;
  const size_t least = least_budget(s);
  CHECK(least && mix_set_memory_budget(0) == MIX_OK && shard(false) && run_loop(s, true, &expected, &whole),
        s->name);
  CHECK(least < whole.plan.peak_bytes, s->name);
  const size_t budget = least + (whole.plan.peak_bytes - least) / 4;
  CHECK(mix_set_memory_budget(budget) == MIX_OK && shard(true) && run_loop(s, true, &found, &divided),
        s->name);
  CHECK(mix_set_memory_budget(0) == MIX_OK && equal(&expected, &found), s->name);
  CHECK(divided.plan.peak_bytes <= budget && divided.plan.recomputed_nodes > 0, s->name);
  return 0;
}

static int budget(void) {
  static const setting all[] = {{"adam", adam, .large = true},
                                {"adam, mixed_float16", adam, "mixed_float16", .large = true},
                                {"kahan", kahan, "bfloat16", .large = true},
                                {"LoRA", adam, "mixed_bfloat16", .large = true, .lora = 3},
                                {"LoRA, stochastic", stochastic, "mixed_bfloat16", .large = true, .lora = 3}};
  int code = 0;
  rows_of_rank = 512;
  for (size_t i = 0; i < sizeof all / sizeof *all && !code; i++)
    MIX_SCOPE { code = fits_budget(&all[i]); }
  return code;
}

/* ---- checkpoints ---- */

/* Half of a run in one form, and the rest in the other. */
static int goes_on(const setting *s, const char *folder, bool divided_first) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s_%d", folder, s->name, divided_first);
  mix_model *model = new_model(s);
  CHECK(shard(divided_first) && fit(model, 4, 7, kept(path)), s->name);
  model = new_model(s);
  CHECK(shard(!divided_first) && fit(model, 4, 0, kept(path)), s->name);
  CHECK(steps_run == 4 * ROWS / BATCH - 7, s->name);
  CHECK(gather(model) && read_values(model, &found), s->name);
  CHECK(equal(&expected, &found), s->name);
  return 0;
}

/* Rank 0 alone saves the model after an epoch, and has the state in it that it would have had. */
static int saves_model(const setting *s, const char *folder) {
  static values saved[2];
  for (int divided = 0; divided < 2; divided++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s_%d.keras", folder, s->name, divided);
    mix_callback *saves = mix_model_checkpoint(path);
    CHECK(shard(divided) && fit(new_model(s), EPOCHS, 0, rank ? NULL : saves), s->name);
    mix_model *loaded = rank ? NULL : mix_model_load(path);
    CHECK(rank || (loaded && read_values(loaded, &saved[divided])), s->name);
  }
  CHECK(rank || equal(&saved[0], &saved[1]), s->name);
  return 0;
}

static int checkpoint(const char *folder) {
  static const setting saved[] = {{"adam", adam},
                                  {"muon", muon},
                                  {"averages", averages},
                                  {"overflow", overflows, "mixed_float16", true},
                                  {"stochastic", averages_stochastic, "bfloat16"},
                                  {"kahan", kahan, "bfloat16"}};
  for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
    MIX_SCOPE {
      mix_model *model = new_model(&saved[i]);
      CHECK(shard(false) && fit(model, 4, 0, NULL) && read_values(model, &expected), saved[i].name);
      if (saves_model(&saved[i], folder)) return 1;
      if (goes_on(&saved[i], folder, true) || goes_on(&saved[i], folder, false)) return 1;
    }
  return 0;
}

/* A checkpoint in the middle of a run, and the values that it has; or these values from that checkpoint, on
 * another number of ranks, which are divided if there are several. */
static int part_of_run(const char *folder, bool first) {
  static const setting s = {"averages", averages, "mixed_bfloat16"};
  char path[512], name[512];
  snprintf(path, sizeof path, "%s/checkpoint", folder);
  snprintf(name, sizeof name, "%s/values", folder);
  mix_model *model = new_model(&s);
  if (ranks > 1) CHECK(shard(true), name);
  CHECK(fit(model, 4, 7, kept(path)) && gather(model) && read_values(model, &found), name);
  CHECK(steps_run == (first ? 7 : 0), name);
  if (!first) {
    FILE *file = fopen(name, "rb");
    const bool whole = file && fread(&expected, sizeof expected, 1, file) == 1;
    if (file) fclose(file);
    CHECK(whole && equal(&expected, &found), name);
  } else if (!rank) {
    FILE *file = fopen(name, "wb");
    const bool whole = file && fwrite(&found, sizeof found, 1, file) == 1;
    CHECK(file && !fclose(file) && whole, name);
  }
  return 0;
}

/* ---- changes of the form ---- */

static int changed(void) {
  static const setting s = {"adam", adam};
  mix_model *model = new_model(&s);
  CHECK(shard(false) && fit(model, 1, 0, NULL) && fit(model, 1, 0, NULL) && fit(model, 1, 0, NULL), "plain");
  CHECK(read_values(model, &expected), "plain");
  /* from whole to divided, on in that form, and back */
  model = new_model(&s);
  CHECK(fit(model, 1, 0, NULL) && shard(true) && fit(model, 1, 0, NULL), "divided");
  CHECK(gather(model) && shard(false) && fit(model, 1, 0, NULL) && read_values(model, &found), "back");
  CHECK(equal(&expected, &found), "back");
  /* state that rank 0 alone is given counts, also where it was divided before */
  model = new_model(&s);
  CHECK(shard(true) && fit(model, 1, 0, NULL), "given");
  mix_list *state = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; !rank && i < mix_list_count(state); i++) {
    mix_variable *variable = mix_list_get(state, i);
    if (variable->share) mix_variable_assign(variable, mix_fill(variable->shape, 0.25, variable->dtype));
  }
  CHECK(fit(model, 1, 0, NULL) && gather(model) && read_values(model, &expected), "given");
  model = new_model(&s);
  CHECK(shard(false) && fit(model, 1, 0, NULL), "given, whole");
  state = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; i < mix_list_count(state); i++) {
    mix_variable *variable = mix_list_get(state, i);
    if (variable->shape.rank) mix_variable_assign(variable, mix_fill(variable->shape, 0.25, variable->dtype));
  }
  CHECK(fit(model, 1, 0, NULL) && read_values(model, &found), "given, whole");
  CHECK(equal(&expected, &found), "given");
  return 0;
}

/* ---- errors ---- */

static bool has_error(mix_status status, const char *text) {
  const bool has = mix_error() == status && strstr(mix_error_message(), text);
  if (!has) fprintf(stderr, "expected '%s', got '%s'\n", text, mix_error_message());
  mix_error_clear();
  return has;
}

static int wrong(void) {
  static const setting s = {"adam", adam};
  mix_distribution *all = mix_distribution_current();
  CHECK(mix_distribution_shard(all, (mix_shard)7) && has_error(MIX_VALUE_ERROR, "no kind 7"), "kind");
  CHECK(mix_distribution_shard(all, rank == 1 ? MIX_SHARD_OPTIMIZER : MIX_SHARD_NOTHING) &&
            has_error(MIX_VALUE_ERROR, "rank 1 gives 1, rank 0 gives 0"),
        "different");
  mix_model *model = new_model(&s);
  CHECK(shard(true) && fit(model, 1, 0, NULL), "fit");
  mix_variable *kernel = mix_list_get(mix_model_trainable_variables(model), 0);
  mix_variable *slot = mix_optimizer_slot(mix_model_optimizer(model), kernel, "velocity");
  CHECK(!mix_variable_true_value(slot) && has_error(MIX_RUNTIME_ERROR, "mix_optimizer_gather_state"), "slot");
  CHECK(mix_optimizer_gather_state(mix_model_optimizer(model), ranks) &&
            has_error(MIX_VALUE_ERROR, "expected a rank from 0"),
        "rank");
  /* one that is stale is no value */
  CHECK(gather(model) && mix_variable_true_value(slot) && fit(model, 1, 0, NULL), "gathered");
  CHECK(!mix_variable_true_value(slot) && has_error(MIX_RUNTIME_ERROR, "is divided"), "stale");
  /* without its ranks the state is nowhere whole */
  mix_retain(all);
  mix_set_distribution(NULL);
  CHECK(mix_optimizer_gather_state(mix_model_optimizer(model), 0) &&
            has_error(MIX_RUNTIME_ERROR, "another distribution"),
        "no distribution");
  CHECK(!fit(model, 1, 0, NULL) && has_error(MIX_RUNTIME_ERROR, "is divided"), "alone");
  mix_set_distribution(all);
  mix_release(all);
  return 0;
}

int shard_task(int argc, char **argv) {
  rank = mix_distribution_rank(mix_distribution_current());
  ranks = mix_distribution_size(mix_distribution_current());
  const char *task = argc > 0 ? argv[0] : "";
  if (!strcmp(task, "equal")) return all_equal();
  if (!strcmp(task, "eager")) return own_loop(false) || own_loop(true);
  if (!strcmp(task, "seeds")) return seeds();
  if (!strcmp(task, "memory")) return memory();
  if (!strcmp(task, "budget")) return budget();
  if (!strcmp(task, "checkpoint") && argc == 2) return checkpoint(argv[1]);
  if (!strcmp(task, "first_part") && argc == 2) return part_of_run(argv[1], true);
  if (!strcmp(task, "second_part") && argc == 2) return part_of_run(argv[1], false);
  if (!strcmp(task, "changed")) return changed();
  if (!strcmp(task, "wrong")) return wrong();
  return failed("unknown task", task);
}
