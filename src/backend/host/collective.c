/* Collectives on processors: one thread calls the communicator. Without one there is a single process, and
 * values stay as they are. */
#include "backend/communicator.h"
#include "backend/host/kernel.h"
#include "ops/collective.h"
#include "tensor/shape.h"
#include <string.h>

static size_t operand_bytes(const mix_kernel_args *args) {
  return mix_value_bytes(args->input_types[0].dtype, args->input_types[0].shape);
}

/* In place where the planner gave both one memory. */
static void copy_operand(const mix_kernel_args *args) {
  if (args->outputs[0] != args->inputs[0]) memcpy(args->outputs[0], args->inputs[0], operand_bytes(args));
}

static void check(const mix_kernel_args *args, const char *failure) {
  if (failure) mix_kernel_fail(args, failure);
}

static bool serial(const mix_kernel_args *args) { return true; }

static void start_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  copy_operand(args);
  if (c)
    check(args, c->reduce(c, args->outputs[0], args->output_types[0].dtype,
                          mix_shape_size(args->output_types[0].shape)));
}

/* The exchange knows the memory of the operand. */
static void done_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  if (c) check(args, c->finish(c, args->inputs[0]));
  copy_operand(args);
}

static void broadcast_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  copy_operand(args);
  if (c)
    check(args, c->broadcast(c, args->outputs[0], operand_bytes(args),
                             ((const mix_broadcast_attributes *)args->attributes)->root));
}

static void gather_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  const int ranks = ((const mix_all_gather_attributes *)args->attributes)->ranks;
  if (ranks != (c ? c->ranks : 1))
    mix_kernel_fail(args, "the graph was made for another number of ranks");
  else if (c)
    check(args, c->gather(c, args->inputs[0], operand_bytes(args), args->outputs[0]));
  else
    copy_operand(args);
}

#define KERNEL(op, function)                                                                                 \
  const mix_kernel mix_host_##op = {.name = #op, .serial = serial, .run = function};
KERNEL(all_reduce_start, start_run)
KERNEL(all_reduce_done, done_run)
KERNEL(broadcast, broadcast_run)
KERNEL(all_gather, gather_run)
