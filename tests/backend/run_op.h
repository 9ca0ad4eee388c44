/* Runs one step as a plan of its own, on any backend: arguments in, results out. */
#ifndef TESTS_BACKEND_RUN_OP_H
#define TESTS_BACKEND_RUN_OP_H

#include "backend/backend.h"
#include "base/error.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

#include <stdlib.h>
#include <string.h>

typedef struct operand {
  mix_dtype dtype;
  mix_shape shape;
  void *data;
} operand;

enum { MAX_OPERANDS = 16 };

/* Compiles and runs; returns the status of either. */
static inline mix_status run_step(const mix_backend *backend, int threads, const mix_op *op,
                                  const void *attributes, const mix_program *program, int input_count,
                                  const operand *inputs, int output_count, const operand *outputs) {
  mix_slot slots[2 * MAX_OPERANDS];
  int numbers[2 * MAX_OPERANDS];
  mix_memory *arguments[MAX_OPERANDS], *results[MAX_OPERANDS];
  for (int i = 0; i < input_count + output_count; i++) {
    bool input = i < input_count;
    const operand *x = input ? &inputs[i] : &outputs[i - input_count];
    slots[i] = (mix_slot){.kind = input ? MIX_SLOT_ARGUMENT : MIX_SLOT_RESULT,
                          .index = input ? i : i - input_count,
                          .dtype = x->dtype,
                          .shape = x->shape,
                          .bytes = mix_value_bytes(x->dtype, x->shape)};
    numbers[i] = i;
    if (input)
      arguments[i] = mix_memory_wrap(x->data, slots[i].bytes, NULL);
    else
      results[i - input_count] = mix_memory_wrap(x->data, slots[i].bytes, NULL);
  }
  mix_step step = {.op = op,
                   .attributes = attributes,
                   .program = program,
                   .input_count = input_count,
                   .output_count = output_count,
                   .inputs = numbers,
                   .outputs = numbers + input_count,
                   .guard = -1,
                   .scope = "model/layer"};
  mix_plan plan = {.slot_count = input_count + output_count,
                   .step_count = 1,
                   .slots = slots,
                   .steps = &step,
                   .argument_count = input_count,
                   .result_count = output_count};
  const mix_context context = {
      .backend = backend, .threads = threads, .precision = mix_matmul_precision_default()};
  mix_executable *executable = backend->compile(&plan, &context);
  mix_bindings bindings = {.arguments = arguments, .results = results};
  const mix_ticket ticket = executable ? backend->enqueue(executable, &bindings) : 0;
  const mix_status status = ticket && backend->wait ? backend->wait(ticket) : mix_error();
  if (executable) backend->destroy(executable);
  for (int i = 0; i < input_count; i++) mix_release(arguments[i]);
  for (int i = 0; i < output_count; i++) mix_release(results[i]);
  return status;
}

/* An operand made from numbers; `data` is allocated with malloc. */
static inline operand operand_of(mix_dtype dtype, mix_shape shape, const double *numbers) {
  int64_t count = mix_shape_size(shape);
  operand x = {dtype, shape, calloc((size_t)count + 8, 8)};
  for (int64_t i = 0; numbers && i < count; i++) {
    if (mix_dtype_is_floating(dtype))
      mix_store_double(x.data, dtype, i, numbers[i]);
    else
      mix_store_integer(x.data, dtype, i, (int64_t)numbers[i]);
  }
  return x;
}
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

static inline double element(operand x, int64_t i) { return mix_load_double(x.data, x.dtype, i); }

static inline void free_operands(int count, operand *operands) {
  for (int i = 0; i < count; i++) free(operands[i].data);
}

#endif
