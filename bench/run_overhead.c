/* Table dispatch: time of a plan beyond its kernels, for each step on one thread, each barrier, waking the
 * team, and a call of a captured function. The plans are made by hand: chains of steps whose kernel does
 * nothing, or squares one number. */
#include "backend/cpu/kernels.h"
#include "backend/host/executor.h"
#include "tables.h"
#include <math.h>

enum { STEPS = 100, REPEATS = 20 };

static void do_nothing(const mix_kernel_args *args, const mix_team *team) { (void)args, (void)team; }
static bool always(const mix_kernel_args *args) { return args != NULL; }
static const mix_kernel nothing_serial = {.name = "nothing", .run = do_nothing, .serial = always};
static const mix_kernel nothing_parallel = {.name = "nothing", .run = do_nothing};
static const mix_kernel *const serial_kernels[] = {&nothing_serial, NULL}, *const parallel_kernels[] = {
                                                                               &nothing_parallel, NULL};
static const mix_kernel_row serial_table[] = {{&mix_op_fused, serial_kernels}, {0}},
                            parallel_table[] = {{&mix_op_fused, parallel_kernels}, {0}};

/* x * x of a float32 scalar, from one slot of the arena to the other and back. */
static const mix_program_load load = {.input = 0, .dtype = MIX_FLOAT32};
static const mix_instruction square = {.opcode = MIX_OPCODE_SQUARE, .dtype = MIX_FLOAT32};
static const mix_program_store store = {.output = 0, .reg = 1};
static const mix_program program = {.rank = 1,
                                    .dims = {1},
                                    .load_count = 1,
                                    .instruction_count = 1,
                                    .store_count = 1,
                                    .loads = (mix_program_load *)&load,
                                    .instructions = (mix_instruction *)&square,
                                    .stores = (mix_program_store *)&store};
static const int cells[] = {0, 1};
static mix_slot slots[2] = {{.kind = MIX_SLOT_ARENA, .offset = 0, .dtype = MIX_FLOAT32, .bytes = 4},
                            {.kind = MIX_SLOT_ARENA, .offset = 64, .dtype = MIX_FLOAT32, .bytes = 4}};
static mix_step steps[STEPS];
static _Alignas(64) float arena[32];
static mix_memory *arena_memory; /* around it, made once */

typedef struct chain {
  mix_plan plan;
  mix_executable *executable;
} chain;

static bool run_chain(void *context) {
  if (!arena_memory && !(arena_memory = mix_memory_wrap(arena, sizeof arena, NULL))) return false;
  return mix_host_enqueue(((chain *)context)->executable, &(const mix_bindings){.arena = arena_memory});
}

typedef struct call {
  mix_function *function;
  mix_list *arguments;
} call;

static mix_list *square_body(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_square(mix_list_get(arguments, 0)));
}

static bool run_call(void *context) {
  bool done = false;
  MIX_SCOPE { done = mix_function_call(((call *)context)->function, ((call *)context)->arguments) != NULL; }
  return done;
}

static bool make(chain *x, int count, int threads, const mix_kernel_row *table) {
  const mix_kernel_row *const tables[] = {table, NULL};
  x->plan = (mix_plan){
      .slot_count = 2, .slots = slots, .step_count = count, .steps = steps, .arena_bytes = sizeof arena};
  mix_host_take_all_threads(true);
  x->executable = mix_host_compile(&x->plan, threads, mix_matmul_precision_default(), tables, true);
  mix_host_take_all_threads(false);
  return x->executable != NULL;
}

static json_t *known(double value) { return isnan(value) ? json_null() : json_real(value); }

bool bench_dispatch(const bench_settings *settings) {
  for (int i = 0; i < STEPS; i++)
    steps[i] = (mix_step){.op = &mix_op_fused,
                          .program = &program,
                          .input_count = 1,
                          .output_count = 1,
                          .inputs = &cells[i % 2],
                          .outputs = &cells[!(i % 2)],
                          .guard = -1};
  enum { EMPTY, SMALLEST, TEAM, BARRIERS, CHAINS };
  chain chains[CHAINS] = {0};
  bench_candidate runs[CHAINS + 1];
  call square_call = {mix_function_new(square_body, NULL), mix_list_of(mix_scalar(3, MIX_FLOAT32))};
  const int threads = settings->threads;
  bool good = make(&chains[EMPTY], STEPS, 1, serial_table) &&
              make(&chains[SMALLEST], STEPS, 1, mix_cpu_kernels) &&
              make(&chains[TEAM], 1, threads, parallel_table) &&
              make(&chains[BARRIERS], STEPS, threads, parallel_table);
  for (int i = 0; i < CHAINS; i++) runs[i] = (bench_candidate){.run = run_chain, .context = &chains[i]};
  runs[TEAM].repeats = REPEATS; /* threads that sleep already are not timed */
  runs[CHAINS] = (bench_candidate){.run = run_call, .context = &square_call};
  int rounds;
  mix_executable_facts facts = {0};
  good = good && bench_interleave(runs, CHAINS + 1, settings->quick ? 0.5 : 2, &rounds);
  if (good) mix_host_facts(chains[BARRIERS].executable, &facts);
  for (int i = 0; i < CHAINS; i++) mix_host_destroy(chains[i].executable);
  if (!good) return false;
  /* Microseconds: median, best. */
  const double empty[] = {1e6 * runs[EMPTY].median / STEPS, 1e6 * runs[EMPTY].best / STEPS};
  const double smallest[] = {1e6 * runs[SMALLEST].median / STEPS, 1e6 * runs[SMALLEST].best / STEPS};
  const double team[] = {1e6 * runs[TEAM].median, 1e6 * runs[TEAM].best};
  const double calling[] = {1e6 * runs[CHAINS].median, 1e6 * runs[CHAINS].best};
  /* NaN: a small difference that was lost in the noise of the machine. */
  double barrier[] = {NAN, NAN};
  for (int i = 0; i < 2 && facts.barriers; i++) {
    barrier[i] =
        (1e6 * (i ? runs[BARRIERS].best : runs[BARRIERS].median) - team[i] - empty[i] * (STEPS - 1)) /
        facts.barriers;
    if (barrier[i] < 0) barrier[i] = NAN;
  }
  json_object_set_new(settings->json, "dispatch",
                      json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:i}",
                                "step_microseconds", empty[0], "step_best", empty[1],
                                "smallest_step_microseconds", smallest[0], "smallest_step_best", smallest[1],
                                "team_microseconds", team[0], "team_best", team[1], "barrier_microseconds",
                                known(barrier[0]), "barrier_best", known(barrier[1]), "call_microseconds",
                                calling[0], "call_best", calling[1], "threads", threads));
  if (!settings->text) return true;
  printf("\ndispatch, microseconds: median (best) of %d rounds\n", rounds);
  printf("a step of a plan, one thread, kernel empty    %8.4f (%.4f)\n", empty[0], empty[1]);
  printf("the same with the smallest fused program      %8.4f (%.4f)\n", smallest[0], smallest[1]);
  printf("a call of a captured function of that size    %8.4f (%.4f)\n", calling[0], calling[1]);
  if (threads > 1) {
    printf("a plan of one empty step on %2d threads        %8.4f (%.4f)\n", threads, team[0], team[1]);
    printf("a barrier of %2d threads                       %8.4f (%.4f)\n", threads, barrier[0], barrier[1]);
  }
  return true;
}
