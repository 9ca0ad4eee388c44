/* What the compiler asks a host backend: which products sum alike, and what is faster on processors. */
#include "backend/host/host.h"
#include "tensor/shape.h"
#include <string.h>

/* ---- products ---- */

typedef struct product_args {
  union {
    mix_matmul_attributes matmul;
    max_align_t any[16]; /* more than the attributes of any contraction with a downcast */
  } attributes;
  mix_type inputs[2], output;
  mix_kernel_args args;
} product_args;

static const mix_kernel_args *args_of(const mix_product *product, mix_matmul_precision precision,
                                      product_args *out) {
  *out = (product_args){
      .attributes.matmul = {.transpose_a = product->transpose_a, .transpose_b = product->transpose_b},
      .inputs = {{product->dtype, product->a}, {product->dtype, product->b}},
      .output = {product->dtype, product->result}};
  out->args = (mix_kernel_args){.op = product->op,
                                .attributes = product->attributes ? product->attributes : &out->attributes,
                                .precision = precision,
                                .input_count = 2,
                                .output_count = 1,
                                .input_types = out->inputs,
                                .output_types = &out->output};
  return &out->args;
}

const mix_kernel *mix_host_choose_product(const mix_context *context, const mix_product *product,
                                          mix_dispatch_trace *trace, void *to) {
  product_args args;
  return mix_host_choose_traced(mix_host_tables(context), args_of(product, context->precision, &args), trace,
                                to);
}

bool mix_host_same_product(const mix_context *context, const mix_product *x, const mix_product *y) {
  product_args a, b;
  const mix_kernel_row *const *tables = mix_host_tables(context);
  const mix_kernel *kernel = mix_host_choose(tables, args_of(x, context->precision, &a), NULL, 0);
  if (!kernel || kernel != mix_host_choose(tables, args_of(y, context->precision, &b), NULL, 0)) return false;
  return !kernel->same_order || kernel->same_order(&a.args, &b.args);
}

/* The product as its downcast op, on float32 operands. */
static void upcast_args_of(const mix_product *product, mix_matmul_precision precision, product_args *wide) {
  const mix_op *downcast = product->op->contraction->downcast;
  args_of(product, precision, wide);
  if (product->attributes) memcpy(&wide->attributes, product->attributes, product->op->attributes_size);
  *(mix_dtype *)((char *)&wide->attributes + downcast->contraction->result_dtype->offset) = product->dtype;
  wide->args.op = downcast;
  wide->args.attributes = &wide->attributes;
  wide->inputs[0].dtype = wide->inputs[1].dtype = MIX_FLOAT32;
}

/* The product as its downcast op that rounds float32 operands. False: it has none. */
static bool rounding_args_of(const mix_product *product, mix_matmul_precision precision,
                             product_args *rounding) {
  const mix_op *downcast = product->op->contraction ? product->op->contraction->downcast : NULL;
  if (!downcast || !downcast->contraction->round_operands ||
      downcast->attributes_size > sizeof rounding->attributes)
    return false;
  upcast_args_of(product, precision, rounding);
  *(bool *)((char *)&rounding->attributes + downcast->contraction->round_operands->offset) = true;
  return true;
}

/* Where 16 bits are multiplied as such, rounding weights in each product takes 2 to 5 % of a step longer than
 * copies of them. */
static bool may_round(const mix_context *context, const mix_kernel *kernel) {
  return kernel && (kernel->widened || context->memory == MIX_MEMORY_LEAST);
}

bool mix_host_rounds_operands(const mix_context *context, const mix_product *product) {
  product_args rounding;
  if (!rounding_args_of(product, context->precision, &rounding)) return false;
  const mix_kernel *kernel = mix_host_choose_product(context, product, NULL, NULL);
  return may_round(context, kernel) &&
         kernel == mix_host_choose(mix_host_tables(context), &rounding.args, NULL, 0);
}

/* Of one operand alone other algorithms of the kernel may do the product. */
bool mix_host_rounds_operand(const mix_context *context, const mix_product *product, int operand) {
  product_args narrow, mixed;
  if (!rounding_args_of(product, context->precision, &mixed)) return false;
  mixed.inputs[!operand].dtype = product->dtype;
  const mix_kernel *kernel = mix_host_choose_product(context, product, NULL, NULL);
  if (!may_round(context, kernel) ||
      kernel != mix_host_choose(mix_host_tables(context), &mixed.args, NULL, 0))
    return false;
  args_of(product, context->precision, &narrow);
  return !kernel->same_order || kernel->same_order(&narrow.args, &mixed.args);
}

/* Operands upcast to float32 are read in place, whereas 16-bit operands are packed. They take twice the
 * memory, so upcasting pays only while everything fits into the second-level cache. */
bool mix_host_prefers_upcast(const mix_context *context, const mix_product *product) {
  product_args wide;
  const mix_op *downcast = product->op->contraction ? product->op->contraction->downcast : NULL;
  if (!downcast || downcast->attributes_size > sizeof wide.attributes) return false;
  const mix_kernel *kernel = mix_host_choose_product(context, product, NULL, NULL);
  if (!kernel || !kernel->widened) return false;
  const int64_t numbers =
      mix_shape_size(product->a) + mix_shape_size(product->b) + mix_shape_size(product->result);
  if (numbers * (int64_t)sizeof(float) > mix_cpu_cache(2) * 3 / 4) return false;
  upcast_args_of(product, context->precision, &wide);
  return mix_host_choose(mix_host_tables(context), &wide.args, NULL, 0) == kernel->widened;
}

bool mix_host_widens_operands(const mix_context *context, const mix_product *product) {
  product_args narrow, wide;
  mix_product upcast = *product;
  upcast.dtype = MIX_FLOAT32;
  const mix_kernel *kernel = mix_host_choose_product(context, product, NULL, NULL);
  if (!kernel || !kernel->widened || mix_host_prefers_upcast(context, product)) return false;
  if (kernel->widened != mix_host_choose_product(context, &upcast, NULL, NULL)) return false;
  args_of(product, context->precision, &narrow);
  args_of(&upcast, context->precision, &wide);
  return !kernel->same_order || kernel->same_order(&narrow.args, &wide.args);
}

/* ---- kernels ---- */

/* Element-wise ops run as programs; views and sources need no kernel. The reference kernels take every dtype
 * of an op. */
bool mix_host_supports(const mix_context *context, const mix_op *op, mix_dtype dtype) {
  if (op->flags & (MIX_OP_ELEMENTWISE | MIX_OP_VIEW | MIX_OP_BARRIER | MIX_OP_SOURCE)) return true;
  for (const mix_kernel_row *const *table = mix_host_tables(context); *table; table++)
    for (const mix_kernel_row *row = *table; row->op; row++)
      if (row->op == op) return true;
  return false;
}

/* A product writes its result in blocks: an epilogue cannot sum over all of them, except to test them. */
bool mix_host_supports_epilogue(const mix_context *context, const mix_product *product,
                                const mix_program *program) {
  return program->reduction <= MIX_REDUCE_ALL_FINITE && !program->sum_count;
}

/* ---- memory ---- */

/* Under `auto` what stays in a core's share of the last cache saves rounding; what does not is read from
 * memory, like the weight. The limit is a constant and not that cache's size, so that machines with the same
 * kernels choose alike. */
bool mix_host_avoids_copies(const mix_context *context, size_t bytes) {
  enum { MAX_BYTES = 4 << 20 };
  return context->memory == MIX_MEMORY_LEAST || (context->memory == MIX_MEMORY_AUTO && bytes > MAX_BYTES);
}

bool mix_host_prefers_speculation(const mix_context *context, size_t gradient_bytes, size_t operand_bytes) {
  enum {
    MIN_BYTES = 4 << 20, /* a smaller gradient stays in a cache and costs less than the extra steps */
    TIMES_OPERANDS = 4,
  };
  return gradient_bytes >= MIN_BYTES && gradient_bytes / TIMES_OPERANDS >= operand_bytes;
}

static bool is_stored_over_space(const mix_step *step, int output) {
  for (int s = 0; s < step->program->store_count; s++)
    if (step->program->stores[s].output == output) return true;
  return false; /* the result of a reduction */
}

/* Does the program read operand `input` exactly once, in iteration order? */
static bool is_read_in_order(const mix_program *program, int input) {
  int loads = 0;
  for (int l = 0; l < program->load_count; l++) {
    if (program->loads[l].input != input) continue;
    loads++;
    if (program->loads[l].offset) return false;
    int64_t stride = 1;
    for (int d = program->rank - 1; d >= 0; stride *= program->dims[d--])
      if (program->dims[d] != 1 && program->loads[l].strides[d] != stride) return false;
  }
  return loads == 1;
}

static bool reads(const mix_plan *plan, const mix_step *step, mix_slot_kind kind, int index) {
  bool found = false;
  for (int i = 0; i < step->input_count && !found; i++) {
    const mix_slot *slot = &plan->slots[step->inputs[i]];
    found = slot->kind == kind && slot->index == index;
  }
  return found;
}

static bool reads_result_of(const mix_step *step, const mix_step *before) {
  for (int i = 0; i < step->input_count; i++)
    for (int o = 0; o < before->output_count; o++)
      if (step->inputs[i] == before->outputs[o]) return true;
  return false;
}

/* Does a step of a loop over chunks write its rows of a result when all threads have read those of the
 * operand? It does where the readers are loops, whose results the writers read, loops as well. */
static bool writes_after_reads(const mix_step *loop, int input, int output) {
  const mix_scan_attributes *attributes = loop->attributes;
  const mix_plan *body = loop->body;
  if (input < attributes->carries || input >= attributes->carries + attributes->inputs) return false;
  if (output < attributes->carries) return false;
  for (int r = 0; r < body->step_count; r++) {
    const mix_step *reader = &body->steps[r];
    if (!reads(body, reader, MIX_SLOT_ARGUMENT, input)) continue;
    for (int w = 0; w < body->step_count; w++) {
      const mix_step *writer = &body->steps[w];
      bool writes = false;
      for (int o = 0; o < writer->output_count; o++) {
        const mix_slot *slot = &body->slots[writer->outputs[o]];
        writes = writes || (slot->kind == MIX_SLOT_RESULT && slot->index == output);
      }
      if (writes && (w <= r || !reader->body || !writer->body || !reads_result_of(writer, reader)))
        return false;
    }
  }
  return true;
}

/* A program reads and writes element by element. The operands of a product are read until its end. An update
 * leaves what it does not replace. Collectives exchange in place. */
bool mix_host_writes_over(const mix_plan *plan, const mix_step *step, int input, int output) {
  const mix_dtype from = plan->slots[step->inputs[input]].dtype,
                  to = plan->slots[step->outputs[output]].dtype;
  if (step->body) return from == to && writes_after_reads(step, input, output);
  if (step->op->flags & MIX_OP_UPDATES || mix_op_is_collective(step->op)) return input == 0 && output == 0;
  return step->program && input >= (step->op->contraction ? MIX_CONTRACTED : 0) &&
         mix_dtype_size(from) == mix_dtype_size(to) && is_stored_over_space(step, output) &&
         is_read_in_order(step->program, input);
}
