/* Table threads: how many threads a plan chooses, beside one and two, on the machine as it is and while four
 * other processes are busy. Times include what waiting costs: a window of many runs, wall clock. */
#include "backend/host/executor.h"
#include "cli/bench/step_candidate.h"
#include "tables.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUSY = 4, CANDIDATES = 3, MAX_WINDOWS = 64, MAX_RUNS = 1 << 15 };
enum { ONE, TWO, CHOSEN };

/* Seconds of runs in a row: several time slices of every process. */
#define WINDOW 0.05

typedef struct workload {
  bool trains;
  int64_t units, batch;
} workload;

typedef struct candidate {
  int threads, in_use; /* as set; as the plan has it */
  mix_function *function;
  double windows[MAX_WINDOWS]; /* seconds of a run in each */
  double *runs;                /* the latest times of single runs */
  int64_t run_count;
} candidate;

/* ---- busy processes ---- */

/* They end with this process, or after the longest time that the table may take. */
static bool start_busy(pid_t *processes, unsigned seconds) {
  for (int i = 0; i < BUSY; i++) {
    processes[i] = fork();
    if (processes[i] < 0) return false;
    if (processes[i]) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    for (volatile unsigned i = 0;; i++) continue;
  }
  usleep(100000);
  return true;
}

static void stop_busy(const pid_t *processes) {
  for (int i = 0; i < BUSY && processes[i] > 0; i++) {
    kill(processes[i], SIGKILL);
    waitpid(processes[i], NULL, 0);
  }
}

/* ---- plans ---- */

static mix_list *predict_body(void *context, mix_list *arguments) {
  return mix_list_of(mix_model_call(context, mix_list_get(arguments, 0), .training = MIX_FALSE));
}

/* A model of its own for each candidate, so that they do not share weights in the caches. */
static bool prepare(candidate *x, const workload *w, bool all, mix_list *data) {
  bench_step step = {.policy = "float32"};
  mix_set_threads(x->threads);
  mix_host_take_all_threads(all);
  bool good = bench_step_prepare(&step, w->units, data);
  x->function = step.function;
  if (good && !w->trains) { x->function = mix_function_new(predict_body, step.model); }
  good = good && mix_function_call(x->function, data) != NULL;
  mix_host_take_all_threads(false);
  x->in_use = mix_threads_awake(); /* by the run before */
  return good;
}

static bool run_window(candidate *x, mix_list *data, double *mean) {
  mix_set_threads(x->threads);
  const double begin = bench_now();
  double now = begin;
  int64_t count = 0;
  while (!count || now - begin < WINDOW) {
    bool good = false;
    MIX_SCOPE { good = mix_function_call(x->function, data) != NULL; }
    if (!good) return false;
    const double end = bench_now();
    x->runs[x->run_count++ % MAX_RUNS] = end - now;
    now = end, count++;
  }
  *mean = (now - begin) / (double)count;
  return true;
}

/* ---- rows ---- */

static double median_ratio(const candidate *a, const candidate *b, int windows) {
  double ratios[MAX_WINDOWS];
  for (int w = 0; w < windows; w++) ratios[w] = a->windows[w] / b->windows[w];
  return bench_median(ratios, windows);
}

static double median_of(const candidate *x, int windows) {
  double sorted[MAX_WINDOWS];
  for (int w = 0; w < windows; w++) sorted[w] = x->windows[w];
  return bench_median(sorted, windows);
}

/* Of the single runs, which it sorts. */
static double percentile_99(candidate *x) {
  const int count = x->run_count < MAX_RUNS ? (int)x->run_count : MAX_RUNS;
  bench_median(x->runs, count);
  return x->runs[(int)(0.99 * (count - 1))];
}

static json_t *measure(const workload *w, candidate *candidates, mix_list *data, int busy, int windows,
                       bool text) {
  for (int i = 0; i < CANDIDATES; i++) candidates[i].run_count = 0;
  for (int round = -1; round < windows; round++) /* the first one warms up */
    for (int i = 0; i < CANDIDATES; i++) {
      candidate *x = &candidates[(i + round + CANDIDATES) % CANDIDATES];
      if (!run_window(x, data, &x->windows[round < 0 ? 0 : round])) return NULL;
    }
  const double slower = fmax(median_ratio(&candidates[CHOSEN], &candidates[ONE], windows),
                             median_ratio(&candidates[CHOSEN], &candidates[TWO], windows));
  double mean[CANDIDATES], late[CANDIDATES];
  for (int i = 0; i < CANDIDATES; i++) {
    mean[i] = 1e6 * median_of(&candidates[i], windows);
    late[i] = 1e6 * percentile_99(&candidates[i]);
  }
  const char *kind = w->trains ? "train" : "predict";
  if (text)
    printf("%-8s %6lld %6lld %5d %10.1f %10.1f %10.1f %10.0f %10.0f %10.0f %8d %8.2f\n", kind,
           (long long)w->units, (long long)w->batch, busy, mean[ONE], mean[TWO], mean[CHOSEN], late[ONE],
           late[TWO], late[CHOSEN], candidates[CHOSEN].in_use, slower);
  return json_pack("{s:s, s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:f}", "kind", kind, "units",
                   (json_int_t)w->units, "batch_size", (json_int_t)w->batch, "busy", busy, "one_microseconds",
                   mean[ONE], "two_microseconds", mean[TWO], "chosen_microseconds", mean[CHOSEN],
                   "one_p99_microseconds", late[ONE], "two_p99_microseconds", late[TWO],
                   "chosen_p99_microseconds", late[CHOSEN], "chosen_threads", candidates[CHOSEN].in_use,
                   "time_to_better", slower);
}

static bool one_workload(const workload *w, const bench_settings *settings, json_t *rows) {
  const int windows = settings->quick ? 3 : 21;
  mix_generator *generator = mix_generator_new(1);
  mix_list *data = generator ? bench_step_data(generator, w->batch) : NULL;
  candidate candidates[CANDIDATES] = {
      [ONE] = {.threads = 1}, [TWO] = {.threads = 2}, [CHOSEN] = {.threads = settings->threads}};
  bool good = data != NULL;
  for (int i = 0; i < CANDIDATES && good; i++) {
    good = prepare(&candidates[i], w, i == TWO, data);
    candidates[i].runs = malloc(MAX_RUNS * sizeof(double));
    good = good && candidates[i].runs;
  }
  for (int busy = 0; busy <= BUSY && good; busy += BUSY) {
    pid_t processes[BUSY] = {0};
    good = !busy || start_busy(processes, 600);
    json_t *row = good ? measure(w, candidates, data, busy, windows, settings->text) : NULL;
    stop_busy(processes);
    good = row && json_array_append_new(rows, row) == 0;
  }
  for (int i = 0; i < CANDIDATES; i++) free(candidates[i].runs);
  mix_set_threads(settings->threads);
  return good;
}

bool bench_threads(const bench_settings *settings) {
  static const workload list[] = {{false, 64, 1},  {false, 64, 8},   {false, 64, 32},  {false, 64, 128},
                                  {true, 64, 1},   {true, 64, 16},   {true, 64, 64},   {true, 64, 128},
                                  {false, 512, 1}, {false, 512, 32}, {true, 512, 128}, {true, 1024, 128}};
  const workload given = {true, settings->units ? settings->units : 64,
                          settings->batch ? settings->batch : 128};
  const bool one = settings->units || settings->batch;
  json_t *rows = json_array();
  bool good = rows && json_object_set_new(settings->json, "threads", rows) == 0;
  if (settings->text)
    printf(
        "\nthreads, 784-units-units-10 in float32: microseconds of a run, medians of windows, and the 99th "
        "percentile of runs\n%-8s %6s %6s %5s %10s %10s %10s %10s %10s %10s %8s %8s\n",
        "", "units", "batch", "busy", "one", "two", "chosen", "p99 one", "p99 two", "p99", "threads",
        "to best");
  for (size_t i = 0; i < (one ? 1 : sizeof list / sizeof *list) && good; i++)
    MIX_SCOPE { good = one_workload(one ? &given : &list[i], settings, rows); }
  return good;
}
