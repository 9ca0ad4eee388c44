/* A small training step for the compiler's tests, and the bytes that it may change. */
#ifndef TESTS_COMPILE_TRAINER_H
#define TESTS_COMPILE_TRAINER_H

#include "compile/support.h"
#include "graph/capture.h"
#include "support/memory.h"

/* Dense (4 -> 3), sparse softmax cross-entropy, SGD with momentum under a finite check, iterations:
 * everything in a training step. */
typedef struct trainer {
  mix_variable *kernel, *bias, *velocity, *iterations, *skipped;
  bool unguarded;
  int traces;
} trainer;

static inline mix_list *train_step(void *context, mix_list *arguments) {
  trainer *t = context;
  t->traces++;
  mix_tape *tape = mix_tape_begin();
  const char *former = mix_graph_scope_set(mix_intern("model/logits"));
  mix_tensor *logits =
      mix_bias_add(mix_matmul(mix_list_get(arguments, 0), mix_variable_value(t->kernel), false, false),
                   mix_variable_value(t->bias));
  mix_graph_scope_set(mix_intern("model/loss"));
  mix_tensor *loss = mix_reduce_mean(mix_sparse_softmax_cross_entropy(mix_list_get(arguments, 1), logits),
                                     MIX_ALL_AXES, false);
  mix_graph_scope_set(former);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(t->kernel, t->bias));
  if (!gradients) return NULL;
  mix_tensor *dk = mix_list_get(gradients, 0), *db = mix_list_get(gradients, 1);
  mix_tensor *finite = mix_logical_and(mix_all_finite(dk), mix_all_finite(db));
  mix_tensor *kernel = mix_variable_value(t->kernel), *bias = mix_variable_value(t->bias),
             *velocity = mix_variable_value(t->velocity);
  mix_tensor *new_velocity = mix_add(mix_multiply(velocity, scalar(0.5)), dk);
  mix_tensor *iterations = mix_variable_value(t->iterations),
             *next = mix_add(iterations, mix_scalar(1, MIX_INT64));
  mix_variable_assign(t->velocity, mix_select(finite, new_velocity, velocity));
  mix_variable_assign(
      t->kernel, mix_select(finite, mix_subtract(kernel, mix_multiply(new_velocity, scalar(0.25))), kernel));
  mix_variable_assign(t->bias, mix_select(finite, mix_subtract(bias, mix_multiply(db, scalar(0.25))), bias));
  mix_variable_assign(t->iterations, t->unguarded ? next : mix_select(finite, next, iterations));
  mix_variable_assign_add(t->skipped, mix_cast(mix_logical_not(finite), MIX_INT64));
  return mix_list_of(loss, finite);
}

static inline trainer new_trainer(void) {
  return (trainer){
      .kernel = variable(
          "kernel", mix_reshape(vec(MIX_FLOAT32, 0.5, -0.25, 1, 0.125, -0.0, 0.75, -1, 0.25, 0.5, 0, 1, -0.5),
                                MIX_SHAPE(4, 3))),
      .bias = variable("bias", vec(MIX_FLOAT32, 0, -0.0, 0.5)),
      .velocity = mix_variable_new(mix_fill(MIX_SHAPE(4, 3), 0, MIX_FLOAT32), .name = "velocity",
                                   .not_trainable = true),
      .iterations = mix_variable_new(mix_scalar(0, MIX_INT64), .name = "iterations", .not_trainable = true),
      .skipped = mix_variable_new(mix_scalar(0, MIX_INT64), .name = "skipped", .not_trainable = true),
  };
}

static inline mix_tensor *batch(int rows, double non_finite) {
  double x[64];
  for (int i = 0; i < rows * 4; i++) x[i] = (i * 5 % 7 - 3) / 4.0;
  x[1] += non_finite;
  return mix_tensor_from_doubles(x, MIX_FLOAT32, MIX_SHAPE(rows, 4));
}
static inline mix_tensor *labels(int rows, int first) {
  int32_t y[16];
  for (int i = 0; i < rows; i++) y[i] = i % 3;
  y[0] = first;
  return mix_tensor_from(y, MIX_INT32, MIX_SHAPE(rows));
}

typedef struct bytes {
  unsigned char kernel[48], bias[12], velocity[48];
  int64_t iterations, skipped;
} bytes;
static inline bytes bytes_of(const trainer *t) {
  bytes b;
  memset(&b, 0, sizeof b);
  memcpy(b.kernel, bytes_of_memory(t->kernel->memory), sizeof b.kernel);
  memcpy(b.bias, bytes_of_memory(t->bias->memory), sizeof b.bias);
  memcpy(b.velocity, bytes_of_memory(t->velocity->memory), sizeof b.velocity);
  memcpy(&b.iterations, bytes_of_memory(t->iterations->memory), 8);
  memcpy(&b.skipped, bytes_of_memory(t->skipped->memory), 8);
  return b;
}

#endif
