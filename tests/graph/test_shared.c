/* Tensors and variables used by several threads at once: evaluating, reading, assigning. Also runs under
 * ThreadSanitizer. */
#include "../compile/support.h"

#include "compile/evaluate.h"
#include "graph/lock.h"
#include "support/memory.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 60, LENGTH = 5000 };

/* ---- threads that start together ---- */

typedef struct crew {
  atomic_int arrived;
  void (*work)(void *context, int thread);
  void *context;
  atomic_bool failed;
} crew;

static void *member(void *context) {
  crew *c = context;
  int thread = atomic_fetch_add(&c->arrived, 1);
  while (c->arrived < THREADS) sched_yield(); /* spin until the last one arrives */
  MIX_SCOPE { c->work(c->context, thread); }
  if (mix_error()) print_error("thread %d: %s\n", thread, mix_error_message()), c->failed = true;
  return NULL;
}

static void on_threads(void (*work)(void *context, int thread), void *context) {
  crew c = {.work = work, .context = context};
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, member, &c), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_false(c.failed);
}

static void pause_milliseconds(long milliseconds) {
  nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

/* ---- lazy values ---- */

/* 49, through many nodes. */
static mix_tensor *chain(void) {
  mix_tensor *x = mix_scalar(3, MIX_INT64), *one = mix_scalar(1, MIX_INT64), *y = mix_multiply(x, x);
  for (int i = 0; i < 40; i++) y = mix_add(mix_multiply(y, one), one);
  return y;
}

typedef struct shared {
  mix_tensor *tensors[THREADS];
  mix_tape *tape;
  double seen[THREADS];
} shared;

static void read_item(void *context, int thread) {
  shared *s = context;
  s->seen[thread] = mix_tensor_item(s->tensors[thread]);
}

static void one_tensor_is_computed_for_all(void **state) {
  (void)state;
  mix_set_threads(1);
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s;
      for (int i = 0; i < THREADS; i++) s.tensors[i] = i ? s.tensors[0] : chain();
      on_threads(read_item, &s);
      for (int i = 0; i < THREADS; i++) assert_int_equal(s.seen[i], 49);
      assert_int_equal(s.tensors[0]->node->input_count, 0);
    }
}

/* One thread releases what it computed while another thread walks over it. */
static void graphs_may_have_parts_in_common(void **state) {
  (void)state;
  mix_set_threads(1);
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s;
      mix_scope *inner = mix_scope_begin();
      mix_tensor *common = chain();
      for (int i = 0; i < THREADS; i++)
        s.tensors[i] = mix_retain(i ? mix_add(common, mix_scalar(i, MIX_INT64)) : common);
      mix_scope_end(inner);
      on_threads(read_item, &s);
      for (int i = 0; i < THREADS; i++) {
        assert_int_equal(s.seen[i], 49 + i);
        mix_release(s.tensors[i]);
      }
    }
}

static void a_value_is_computed_once(void **state) {
  (void)state;
  mix_tensor *y = chain();
  const void *data = mix_tensor_data(y);
  assert_true(mix_evaluate_nodes(1, &y->node));
  assert_ptr_equal(mix_tensor_data(y), data);
  has_values(y, 49);
}

static void read_or_forget(void *context, int thread) {
  shared *s = context;
  if (thread == 0)
    mix_release(s->tape);
  else
    s->seen[thread] = mix_tensor_item(s->tensors[thread]);
}

/* The operands are released when the tape and all evaluations have ended, in any order. */
static void a_tape_ends_while_others_compute(void **state) {
  (void)state;
  mix_set_threads(1);
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      shared s;
      mix_scope *inner = mix_scope_begin();
      s.tape = mix_retain(mix_tape_begin(.persistent = true));
      mix_tensor *y = mix_retain(chain());
      mix_tape_end(s.tape);
      mix_scope_end(inner);
      for (int i = 0; i < THREADS; i++) s.tensors[i] = y;
      on_threads(read_or_forget, &s);
      for (int i = 1; i < THREADS; i++) assert_int_equal(s.seen[i], 49);
      assert_int_equal(y->node->input_count, 0);
      mix_release(y);
    }
}

/* ---- variables ---- */

typedef struct readings {
  mix_variable *variable;
  mix_tensor *kept[THREADS];
  atomic_int torn;
} readings;

static void keep_value(void *context, int thread) {
  readings *r = context;
  r->kept[thread] = mix_retain(mix_variable_value(r->variable));
}

static void concurrent_reads_share_one_value(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      readings r = {.variable = variable("v", vec(MIX_FLOAT32, 1, 2))};
      on_threads(keep_value, &r);
      mix_variable_assign(r.variable, vec(MIX_FLOAT32, 3, 4));
      for (int i = 0; i < THREADS; i++) {
        assert_ptr_equal(r.kept[i]->node, r.kept[0]->node);
        has_values(r.kept[i], 1, 2);
      }
      for (int i = 0; i < THREADS; i++) mix_release(r.kept[i]);
      variable_has(r.variable, 3, 4);
    }
}

static void add_many(void *context, int thread) {
  for (int i = 0; i < ROUNDS; i++)
    MIX_SCOPE {
      if (thread % 2)
        mix_variable_assign_sub(context, mix_negative(mix_scalar(1, MIX_INT64)));
      else
        mix_variable_assign_add(context, mix_scalar(1, MIX_INT64));
    }
}

static void no_addition_is_lost(void **state) {
  (void)state;
  mix_set_threads(1);
  mix_variable *v = variable("v", mix_scalar(0, MIX_INT64));
  on_threads(add_many, v);
  variable_has(v, THREADS * ROUNDS);
}

/* All elements are always equal: the first element and the sum show whether they were read as one value. */
static void write_or_read(void *context, int thread) {
  readings *r = context;
  double numbers[LENGTH];
  for (int i = 0; i < ROUNDS; i++)
    MIX_SCOPE {
      mix_tensor *value = mix_variable_value(r->variable);
      if (thread == 0) {
        mix_variable_assign(r->variable, mix_fill(MIX_SHAPE(LENGTH), i % 7, MIX_FLOAT32));
        continue;
      }
      double sum = mix_tensor_item(mix_reduce_sum(value, MIX_ALL_AXES, false));
      mix_tensor_read(value, MIX_FLOAT64, numbers, LENGTH);
      r->torn += sum != LENGTH * numbers[0];
      for (int k = 1; k < LENGTH; k++) r->torn += numbers[k] != numbers[0];
    }
}

static void a_value_stays_whole_while_others_assign(void **state) {
  (void)state;
  mix_set_threads(1);
  readings r = {.variable = variable("v", mix_fill(MIX_SHAPE(LENGTH), 5, MIX_FLOAT32))};
  on_threads(write_or_read, &r);
  assert_int_equal(r.torn, 0);
}

typedef struct writer {
  mix_variable *variable;
  atomic_bool done;
} writer;

static void *assign_two(void *context) {
  writer *w = context;
  MIX_SCOPE { mix_variable_assign(w->variable, scalar(2)); }
  w->done = true;
  return NULL;
}

static void *compute(void *context) {
  MIX_SCOPE {
    *(double *)context = mix_tensor_item(mix_add(mix_scalar(3, MIX_FLOAT32), mix_scalar(4, MIX_FLOAT32)));
  }
  return NULL;
}

/* A pinned read blocks assignments, and nothing else. */
static void an_assignment_waits_for_a_pinned_read(void **state) {
  (void)state;
  writer w = {.variable = variable("v", scalar(1))};
  mix_tensor *value = mix_variable_value(w.variable);
  mix_pinned pinned;
  assert_true(mix_tensor_pin(value, &pinned));
  assert_ptr_equal(pinned.data, bytes_of_memory(w.variable->memory));
  pthread_t computing, assigning;
  double sum = 0;
  assert_int_equal(pthread_create(&computing, NULL, compute, &sum), 0);
  pthread_join(computing, NULL);
  assert_true(sum == 7);
  assert_int_equal(pthread_create(&assigning, NULL, assign_two, &w), 0);
  pause_milliseconds(5);
  assert_false(w.done);
  assert_true(*(const float *)pinned.data == 1);
  mix_tensor_unpin(&pinned);
  pthread_join(assigning, NULL);
  assert_true(w.done);
  has_values(value, 1);
  variable_has(w.variable, 2);
  assert_true(mix_tensor_pin(value, &pinned)); /* the tensor has memory of its own now: nothing blocks */
  assert_false(pinned.storage);
  mix_variable_assign(w.variable, scalar(3));
  mix_tensor_unpin(&pinned);
  assert_false(mix_tensor_pin(NULL, &pinned));
  mix_error_clear();
}

/* ---- messages ---- */

typedef struct listener {
  mix_tensor *finished;
  mix_variable *variable;
  atomic_int heard;
} listener;

/* Uses the library, as a callback may. It would deadlock if its caller held a lock. */
static void listen(void *context, mix_log_level level, const char *message) {
  (void)level, (void)message;
  listener *l = context;
  char text[200];
  mix_tensor_text(l->finished, text, sizeof text);
  l->heard++;
}

static void evaluate_or_assign(void *context, int thread) {
  listener *l = context;
  for (int round = 0; round < ROUNDS; round++)
    MIX_SCOPE {
      if (thread % 2)
        mix_variable_assign(l->variable, scalar(round));
      else
        mix_tensor_item(mix_add(mix_variable_value(l->variable), scalar(1)));
    }
}

static void callbacks_of_the_log_may_use_the_library(void **state) {
  (void)state;
  mix_set_threads(1);
  setenv("MIXTAPE_VERBOSE", "compile,dispatch", 1);
  listener l = {.finished = scalar(1), .variable = mix_variable_new(scalar(0))};
  assert_non_null(mix_tensor_data(l.finished));
  mix_set_log_callback(listen, &l);
  on_threads(evaluate_or_assign, &l);
  mix_set_log_callback(NULL, NULL);
  unsetenv("MIXTAPE_VERBOSE");
  assert_true(l.heard >= ROUNDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_tensor_is_computed_for_all),
      TEST(graphs_may_have_parts_in_common),
      TEST(a_value_is_computed_once),
      TEST(a_tape_ends_while_others_compute),
      TEST(concurrent_reads_share_one_value),
      TEST(no_addition_is_lost),
      TEST(a_value_stays_whole_while_others_assign),
      TEST(an_assignment_waits_for_a_pinned_read),
      TEST(callbacks_of_the_log_may_use_the_library),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
