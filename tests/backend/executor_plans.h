/* Hand-made plans and kernels for the executor's tests. Each kernel writes numbers that depend on everything
 * it read, and runs slowly enough to show a missing barrier. Include <cmocka.h> first. */
#ifndef TESTS_BACKEND_EXECUTOR_PLANS_H
#define TESTS_BACKEND_EXECUTOR_PLANS_H

#include "backend/host/executor.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/machine.h"
#include "tensor/shape.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 3, LENGTH = 24, SLOTS = 64, STEPS = 64 };
typedef int64_t word;

/* ---- kernels: outputs[0] has n words, operands have n words or one; attributes: settings ---- */

typedef struct settings {
  word salt;
  int64_t grain;
  bool reversed;       /* reads its operands backwards: elements of other threads */
  const char *failure; /* reported by the run */
  bool only_slow_fails;
  int slow_rank; /* this thread is slow; -1: none */
} settings;

static void delay(const settings *s, const mix_team *team) {
  for (int i = 0; team->size > 1 && s->slow_rank == team->rank && i < 20; i++) sched_yield();
}

static word mixed(word a, word b) {
  return (word)(((uint64_t)a ^ ((uint64_t)b + 0x9e3779b97f4a7c15)) * 6364136223846793005 +
                1442695040888963407);
}

static word combined(const mix_kernel_args *args, int64_t i, int64_t n) {
  const settings *s = args->attributes;
  word result = s->salt;
  for (int k = 0; k < args->input_count; k++) {
    int64_t count = mix_shape_size(args->input_types[k].shape);
    result = mixed(result, ((const word *)args->inputs[k])[count == 1 ? 0 : s->reversed ? n - 1 - i : i]);
  }
  return result;
}

static void fail_if_requested(const mix_kernel_args *args, const mix_team *team) {
  const settings *s = args->attributes;
  if (s->failure && (!s->only_slow_fails || team->rank == s->slow_rank)) mix_kernel_fail(args, s->failure);
}

static void each_run(const mix_kernel_args *args, const mix_team *team) {
  const settings *s = args->attributes;
  int64_t n = mix_shape_size(args->output_types[0].shape), begin, end;
  mix_team_share(team, n, s->grain, &begin, &end);
  delay(s, team);
  for (int64_t i = begin; i < end; i++) ((word *)args->outputs[0])[i] = combined(args, i, n);
  fail_if_requested(args, team);
}

static bool each_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  const settings *s = args->attributes;
  *count = mix_shape_size(args->output_types[0].shape);
  *grain = s->grain;
  return !s->reversed;
}

static bool yes(const mix_kernel_args *args) { return (void)args, true; }

static size_t exchange_workspace(const mix_kernel_args *args, int threads) {
  (void)threads;
  return (size_t)mix_shape_size(args->output_types[0].shape) * sizeof(word);
}
static int one_barrier(const mix_kernel_args *args, int threads) { return (void)args, (void)threads, 1; }

static bool exchange_prepare(mix_kernel_args *args, int threads) {
  int *prepared = args->prepared = mix_alloc(sizeof *prepared);
  if (prepared) *prepared = threads;
  return prepared != NULL;
}

/* Goes through the workspace, where elements change threads. */
static void exchange_run(const mix_kernel_args *args, const mix_team *team) {
  const settings *s = args->attributes;
  int64_t n = mix_shape_size(args->output_types[0].shape), begin, end;
  if (team->size != *(int *)args->prepared) mix_kernel_fail(args, "not the team it was prepared for");
  mix_team_share(team, n, s->grain, &begin, &end);
  delay(s, team);
  for (int64_t i = begin; i < end; i++) ((word *)args->workspace)[i] = combined(args, i, n);
  mix_team_barrier(team);
  delay(s, team);
  for (int64_t i = begin; i < end; i++) ((word *)args->outputs[0])[i] = ((word *)args->workspace)[n - 1 - i];
}

/* Converts a word to a bool: is it even? */
static void even_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  *(bool *)args->outputs[0] = *(const word *)args->inputs[0] % 2 == 0;
}

static void control_run(const mix_kernel_args *args, const mix_team *team) {
  if (team->rank < 2) ((word *)args->outputs[0])[team->rank] = (word)mix_float_control_get();
}

/* The last thread comes long after the others, and would go on with the next step alone. */
static void late_run(const mix_kernel_args *args, const mix_team *team) {
  if (team->rank == team->size - 1) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  each_run(args, team);
}

static pthread_t collective_thread;
static void collective_run(const mix_kernel_args *args, const mix_team *team) {
  collective_thread = pthread_self();
  each_run(args, team);
}

static const char *never(const mix_kernel_args *args) { return (void)args, "does not like it"; }

static const mix_op op_team = {.name = "team", .flags = MIX_OP_CHECKS_VALUES},
                    op_plain = {.name = "plain_team", .flags = MIX_OP_CHECKS_VALUES},
                    op_serial = {.name = "serial", .flags = MIX_OP_CHECKS_VALUES},
                    op_exchange = {.name = "exchange", .flags = MIX_OP_CHECKS_VALUES},
                    op_late = {.name = "late", .flags = MIX_OP_CHECKS_VALUES},
                    op_collective = {.name = "collective", .flags = MIX_OP_COLLECTIVE},
                    op_even = {.name = "even", .flags = MIX_OP_CHECKS_VALUES},
                    op_control = {.name = "control", .flags = MIX_OP_CHECKS_VALUES},
                    op_nobody = {.name = "nobody", .flags = MIX_OP_CHECKS_VALUES},
                    op_picky = {.name = "picky", .flags = MIX_OP_CHECKS_VALUES};
static const mix_kernel kernel_team = {.name = "k_team", .run = each_run, .share = each_share},
                        kernel_plain = {.name = "k_plain", .run = each_run},
                        kernel_serial = {.name = "k_serial", .run = each_run, .serial = yes},
                        kernel_exchange = {.name = "k_exchange",
                                           .run = exchange_run,
                                           .prepare = exchange_prepare,
                                           .workspace = exchange_workspace,
                                           .barriers = one_barrier},
                        kernel_late = {.name = "k_late", .run = late_run},
                        kernel_collective = {.name = "k_collective", .run = collective_run, .serial = yes},
                        kernel_even = {.name = "k_even", .run = even_run, .serial = yes},
                        kernel_control = {.name = "k_control", .run = control_run},
                        kernel_refusing = {.name = "k_refusing",
                                           .run = each_run,
                                           .unsupported_reason = never},
                        kernel_fast = {.name = "k_fast", .run = each_run, .needs = 1u << 31};
#define ROW(op, ...)                                                                                         \
  {                                                                                                          \
    &op, (const mix_kernel *const[]) { __VA_ARGS__, NULL }                                                   \
  }
static const mix_kernel_row rows[] = {ROW(op_team, &kernel_team),
                                      ROW(op_plain, &kernel_plain),
                                      ROW(op_serial, &kernel_serial),
                                      ROW(op_exchange, &kernel_exchange),
                                      ROW(op_late, &kernel_late),
                                      ROW(op_collective, &kernel_collective),
                                      ROW(op_even, &kernel_even),
                                      ROW(op_control, &kernel_control),
                                      ROW(op_nobody, &kernel_fast, &kernel_refusing),
                                      ROW(op_picky, &kernel_fast, &kernel_refusing),
                                      {NULL, NULL}};
static const mix_kernel_row fallback_rows[] = {ROW(op_picky, &kernel_plain), {NULL, NULL}};
static const mix_kernel_row *const tables[] = {rows, fallback_rows, NULL};

/* ---- plans ---- */

typedef struct builder {
  mix_plan plan;
  mix_slot slots[SLOTS];
  mix_step steps[STEPS];
  int numbers[STEPS][4];
  settings settings[STEPS];
  /* Around the data below. */
  mix_memory *variables[8], *argument_memory[4], *result_memory[4], *arena_memory;
  word variable_data[8][LENGTH];
  word arguments_data[4][LENGTH], results_data[4][LENGTH];
  void *arguments[4], *results[4];
  word *arena;
  size_t arena_words;
} builder;

static builder *builder_new(void) {
  builder *b = calloc(1, sizeof *b);
  b->plan = (mix_plan){.slots = b->slots, .steps = b->steps};
  b->arena_words = 16 * LENGTH;
  b->arena = calloc(b->arena_words, sizeof(word));
  b->plan.arena_bytes = b->arena_words * sizeof(word);
  b->arena_memory = mix_memory_wrap(b->arena, b->plan.arena_bytes, NULL);
  for (int v = 0; v < 8; v++) {
    b->variables[v] = mix_memory_wrap(b->variable_data[v], sizeof b->variable_data[v], NULL);
    for (int i = 0; i < LENGTH; i++) b->variable_data[v][i] = 1000 * v + i;
  }
  for (int a = 0; a < 4; a++) {
    b->arguments[a] = b->arguments_data[a];
    b->results[a] = b->results_data[a];
    b->argument_memory[a] = mix_memory_wrap(b->arguments_data[a], sizeof b->arguments_data[a], NULL);
    b->result_memory[a] = mix_memory_wrap(b->results_data[a], sizeof b->results_data[a], NULL);
    for (int i = 0; i < LENGTH; i++) b->arguments_data[a][i] = 77 * a + i;
  }
  b->plan.argument_count = b->plan.result_count = 4;
  b->plan.variable_count = 8;
  return b;
}

static void builder_free(builder *b) {
  for (int v = 0; v < 8; v++) mix_release(b->variables[v]);
  for (int a = 0; a < 4; a++) mix_release(b->argument_memory[a]), mix_release(b->result_memory[a]);
  mix_release(b->arena_memory);
  free(b->arena);
  free(b);
}

static int add_slot(builder *b, mix_slot slot) {
  slot.bytes = mix_value_bytes(slot.dtype, slot.shape);
  b->slots[b->plan.slot_count] = slot;
  return b->plan.slot_count++;
}
static int arena(builder *b, size_t word_offset, int64_t words) {
  return add_slot(b, (mix_slot){.kind = MIX_SLOT_ARENA,
                                .offset = word_offset * sizeof(word),
                                .dtype = MIX_INT64,
                                .shape = MIX_SHAPE(words)});
}
static int arena_bool(builder *b, size_t word_offset) {
  return add_slot(b, (mix_slot){.kind = MIX_SLOT_ARENA,
                                .offset = word_offset * sizeof(word),
                                .dtype = MIX_BOOL,
                                .shape = MIX_SCALAR});
}
static int of_kind(builder *b, mix_slot_kind kind, int index, int64_t words) {
  return add_slot(b, (mix_slot){.kind = kind, .index = index, .dtype = MIX_INT64, .shape = MIX_SHAPE(words)});
}

/* A step with one result and up to three operands (-1: none). */
static mix_step *add_step(builder *b, const mix_op *op, int output, int first, int second, int third) {
  int number = b->plan.step_count++;
  int *slots = b->numbers[number], inputs[] = {first, second, third}, count = 0;
  slots[3] = output;
  for (int i = 0; i < 3; i++)
    if (inputs[i] >= 0) slots[count++] = inputs[i];
  b->settings[number] = (settings){.salt = number + 1, .grain = 4, .slow_rank = number % THREADS};
  b->steps[number] = (mix_step){.op = op,
                                .attributes = &b->settings[number],
                                .input_count = count,
                                .output_count = 1,
                                .inputs = slots,
                                .outputs = slots + 3,
                                .guard = -1,
                                .scope = "model/dense_1"};
  return &b->steps[number];
}
static settings *settings_of(builder *b, const mix_step *step) { return &b->settings[step - b->steps]; }

static mix_executable *compiled(builder *b, int threads) {
  mix_executable *executable =
      mix_host_compile(&b->plan, threads, mix_matmul_precision_default(), tables, true);
  assert_non_null(executable);
  return executable;
}

/* Runs with the builder's present arguments and results, and this arena. */
static mix_status run_on(builder *b, mix_executable *executable, word *arena) {
  mix_memory *memory = mix_memory_wrap(arena, b->arena_words * sizeof(word), NULL);
  mix_memory *arguments[4], *results[4];
  for (int i = 0; i < 4; i++) {
    arguments[i] = mix_memory_wrap(b->arguments[i], sizeof b->arguments_data[i], NULL);
    results[i] = mix_memory_wrap(b->results[i], sizeof b->results_data[i], NULL);
  }
  mix_host_enqueue(executable, &(mix_bindings){.arguments = arguments,
                                               .variables = b->variables,
                                               .results = results,
                                               .arena = memory});
  for (int i = 0; i < 4; i++) mix_release(arguments[i]), mix_release(results[i]);
  mix_release(memory);
  return mix_error();
}

static mix_status run(builder *b, mix_executable *executable) {
  mix_host_enqueue(executable, &(mix_bindings){.arguments = b->argument_memory,
                                               .variables = b->variables,
                                               .results = b->result_memory,
                                               .arena = b->arena_memory});
  return mix_error();
}
static int barriers(builder *b, int threads) {
  mix_executable *executable = compiled(b, threads);
  mix_executable_facts facts;
  mix_host_facts(executable, &facts);
  assert_int_equal(facts.threads, threads);
  mix_host_destroy(executable);
  return facts.barriers;
}

/* Everything that a plan can write. */
typedef struct outcome {
  word arena[16 * LENGTH], variables[8][LENGTH], results[4][LENGTH];
  mix_status status;
} outcome;

static void observe(builder *b, int threads, outcome *seen) {
  memset(b->arena, 0x5a, b->plan.arena_bytes);
  memset(b->results_data, 0, sizeof b->results_data);
  for (int v = 0; v < 8; v++)
    for (int i = 0; i < LENGTH; i++) b->variable_data[v][i] = 1000 * v + i;
  mix_executable *executable = compiled(b, threads);
  seen->status = run(b, executable);
  mix_error_clear();
  mix_host_destroy(executable);
  memcpy(seen->arena, b->arena, sizeof seen->arena);
  memcpy(seen->variables, b->variable_data, sizeof seen->variables);
  memcpy(seen->results, b->results_data, sizeof seen->results);
}

static void assert_threads_agree(builder *b) {
  outcome *one = calloc(1, sizeof *one), *many = calloc(1, sizeof *many);
  observe(b, 1, one);
  for (int repeat = 0; repeat < 3; repeat++) {
    observe(b, THREADS, many);
    assert_int_equal(one->status, many->status);
    assert_memory_equal(one, many, sizeof *one);
  }
  free(one);
  free(many);
}

#endif
