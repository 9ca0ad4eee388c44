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

/* ---- values that are divided among the ranks ---- */

static mix_division division_of(const mix_kernel_args *args) {
  const mix_share_attributes *a = args->attributes;
  return mix_division_of(a->shape, a->owner);
}

/* A graph is made for one rank of so many. Without ranks, as in a test, the others give nothing. */
static bool is_its_rank(const mix_kernel_args *args) {
  const mix_share_attributes *a = args->attributes;
  const mix_communicator *c = args->communicator;
  if (!c || (c->rank == a->rank && c->ranks == a->ranks)) return true;
  mix_kernel_fail(args, "the graph was made for another rank, or another number of ranks");
  return false;
}

static void scatter_start_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  copy_operand(args);
  if (is_its_rank(args) && c)
    check(args, c->scatter(c, args->outputs[0], args->output_types[0].dtype, division_of(args)));
}

/* The first byte of this rank's share of the whole, and its bytes; 0: it has none. */
static size_t own_bytes(const mix_kernel_args *args, size_t *first) {
  const mix_share_attributes *a = args->attributes;
  const mix_division d = division_of(args);
  const size_t size = mix_dtype_size(args->input_types[0].dtype);
  *first = (size_t)mix_division_begin(&d, a->ranks, a->rank) * size;
  return (size_t)mix_division_begin(&d, a->ranks, a->rank + 1) * size - *first;
}

static void scatter_done_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  size_t first;
  const size_t bytes = own_bytes(args, &first);
  if (c) check(args, c->finish(c, args->inputs[0]));
  if (!bytes)
    memset(args->outputs[0], 0, mix_dtype_size(args->output_types[0].dtype));
  else if (args->outputs[0] != args->inputs[0])
    memcpy(args->outputs[0], (const char *)args->inputs[0] + first, bytes);
}

static void collect_run(const mix_kernel_args *args, const mix_team *team) {
  mix_communicator *c = args->communicator;
  size_t first;
  const size_t bytes = own_bytes(args, &first);
  if (!c)
    memset(args->outputs[0], 0, mix_value_bytes(args->output_types[0].dtype, args->output_types[0].shape));
  if (bytes && args->outputs[0] != args->inputs[0])
    memcpy((char *)args->outputs[0] + first, args->inputs[0], bytes);
  if (is_its_rank(args) && c)
    check(args,
          c->collect(c, args->outputs[0], mix_dtype_size(args->output_types[0].dtype), division_of(args)));
}

#define KERNEL(op, function)                                                                                 \
  const mix_kernel mix_host_##op = {.name = #op, .serial = serial, .run = function};
KERNEL(all_reduce_start, start_run)
KERNEL(all_reduce_done, done_run)
KERNEL(broadcast, broadcast_run)
KERNEL(all_gather, gather_run)
KERNEL(reduce_scatter_start, scatter_start_run)
KERNEL(reduce_scatter_done, scatter_done_run)
KERNEL(collect_shares, collect_run)
