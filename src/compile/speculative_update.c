/* Speculative update fusion. Under loss scaling an update waits until all gradients are tested: a weight
 * gradient is written to memory and read again, although without a test the update would be the epilogue of
 * its product. But small batches of ordinary values cannot produce an infinite gradient, and the norms of the
 * product's operands prove it (mix_op_matmul_finite_bound, for a matmul). So the plan contains both versions
 * under guards:
 *
 *   finite, unproven = matmul_finite_bound(a, b, factor)
 *   finite, gradient = matmul(a, b) and its test                     if unproven
 *   ... all tests give `apply`, whether the step is applied
 *   unfused, fused = apply and unproven, apply and not unproven
 *   weights = matmul(a, b) with the update as epilogue               if fused
 *   weights = the update of `gradient`                               if unfused
 *
 * Where gradients are not worth their memory (mix_set_memory), nothing stores them. The unproven product is
 * only tested, and computed again for the update:
 *
 *   finite = test of matmul(a, b)                                    if unproven
 *   weights = matmul(a, b) with the update as epilogue               if apply
 *
 * All give the same bits. It pays where the gradient is much larger than the operands, which must be kept
 * for it: with small batches. The backend says where; for the least memory, wherever it is larger. */
#include "compile/pass_pipeline.h"
#include "compile/compile.h"

#include <string.h>

typedef struct speculative {
  int product, update; /* steps; update -1: none */
  int load;            /* of the gradient, in the update's program */
  bool recomputed;     /* instead of stored */
  mix_program *fused_program;
  int unproven, fused, unfused; /* slots of the guards */
} speculative;

typedef struct speculation {
  mix_ir *ir;
  mix_plan *plan;
  const int *base;
  int base_count;
  speculative *of;
} speculation;

static int base_of(const speculation *f, int slot) { return slot < f->base_count ? f->base[slot] : slot; }

static int gradient_of(const mix_step *product) {
  return product->outputs[product->program->stores[0].output];
}

/* The op that bounds the step's product; NULL: none, or none that the backend has. */
static const mix_op *bound_of(const speculation *f, const mix_step *step) {
  const mix_contraction *contraction = step->op->contraction;
  const mix_context *context = f->ir->context;
  if (!contraction || !contraction->finite_bound) return NULL;
  const mix_op *bound = contraction->finite_bound(step->attributes);
  return bound && context->backend->supports(context, bound, MIX_FLOAT32) ? bound : NULL;
}

/* Does the step multiply 16-bit numbers in float32? */
static bool is_widened(const speculation *f, const mix_step *step) {
  const mix_slot *slots = f->plan->slots, *a = &slots[step->inputs[0]], *b = &slots[step->inputs[1]];
  const mix_context *context = f->ir->context;
  const mix_product product = {.op = step->op,
                               .attributes = step->attributes,
                               .transpose_a = mix_op_transposes(step->op, step->attributes, 0),
                               .transpose_b = mix_op_transposes(step->op, step->attributes, 1),
                               .dtype = a->dtype,
                               .a = a->shape,
                               .b = b->shape,
                               .result = slots[gradient_of(step)].shape};
  if (a->dtype == MIX_FLOAT32) return mix_dtype_is_16_bit(slots[gradient_of(step)].dtype);
  return context->backend->rounds_operands && context->backend->rounds_operands(context, &product);
}

/* `auto` leaves products alone that have instructions of their own. */
static bool is_recomputed(const speculation *f, const mix_step *step) {
  const mix_context *context = f->ir->context;
  return context->memory == MIX_MEMORY_LEAST || is_widened(f, step);
}

/* A product with a bound (of matmul: a^T b) whose epilogue only stores and tests it. */
static bool is_tested_product(const speculation *f, const mix_step *step) {
  int tested, factor;
  if (!bound_of(f, step) || step->guard >= 0 || !step->program) return false;
  if (!mix_program_only_tests_product(step->program, &tested, &factor)) return false;
  const mix_slot *slots = f->plan->slots, *a = &slots[step->inputs[0]], *b = &slots[step->inputs[1]];
  const mix_slot *gradient = &slots[gradient_of(step)];
  /* A variable may have been overwritten before the fused update. */
  if (gradient->kind != MIX_SLOT_ARENA || a->kind == MIX_SLOT_VARIABLE || b->kind == MIX_SLOT_VARIABLE)
    return false;
  const mix_context *context = f->ir->context;
  if (context->memory == MIX_MEMORY_LEAST) return gradient->bytes > a->bytes + b->bytes;
  const mix_backend *backend = context->backend;
  return backend->prefers_speculation &&
         backend->prefers_speculation(context, gradient->bytes, a->bytes + b->bytes);
}

/* The load of the gradient, if the step is its update and reads it once; otherwise -1. */
static int update_load(const speculation *f, const mix_step *step, int gradient) {
  int load = -1;
  if (!(step->op->flags & MIX_OP_PROGRAM) || step->guard < 0 || !step->writes_variable ||
      step->program->reduction || step->program->sum_count)
    return -1;
  for (int l = 0; l < step->program->load_count; l++)
    if (base_of(f, step->inputs[step->program->loads[l].input]) == base_of(f, gradient))
      load = load < 0 ? l : step->program->load_count;
  if (load < 0 || load == step->program->load_count) return -1;
  return step->inputs[step->program->loads[load].input] == gradient ? load : -1;
}

/* The only reader of the gradient if that is its update; otherwise -1. */
static int find_update(const speculation *f, int product, int *load) {
  const int gradient = gradient_of(&f->plan->steps[product]);
  int update = -1;
  for (int t = product + 1; t < f->plan->step_count; t++) {
    const mix_step *step = &f->plan->steps[t];
    bool reads = false;
    for (int i = 0; i < step->input_count; i++)
      reads = reads || base_of(f, step->inputs[i]) == base_of(f, gradient);
    if (!reads) continue;
    *load = update_load(f, step, gradient);
    if (update >= 0 || *load < 0) return -1;
    update = t;
  }
  return update;
}

/* An update of several gradients is fused with one product; the other gradients are stored. */
static bool is_taken(const speculation *f, int count, int update) {
  for (int i = 0; i < count; i++)
    if (f->of[i].update == update) return true;
  return false;
}

/* Examines the product at step t as candidate `count`. False: out of memory. */
static bool examine_product(speculation *f, int count, int t) {
  speculative *found = &f->of[count];
  const mix_step *product = &f->plan->steps[t];
  bool fits = true;
  *found = (speculative){.product = t};
  found->update = is_tested_product(f, product) ? find_update(f, t, &found->load) : -1;
  if (found->update >= 0 && is_taken(f, count, found->update)) found->update = -1;
  if (found->update < 0) return true;
  found->recomputed = is_recomputed(f, product);
  found->fused_program = mix_epilogue_program(f->ir, f->plan->steps[found->update].program, found->load,
                                              f->plan->slots[gradient_of(product)].shape, &fits);
  if (!fits) found->update = -1;
  return found->fused_program || !fits;
}

static int add_bool(speculation *f) {
  f->plan->slots[f->plan->slot_count] =
      (mix_slot){.kind = MIX_SLOT_ARENA, .dtype = MIX_BOOL, .shape = {.rank = 0}, .bytes = sizeof(bool)};
  return f->plan->slot_count++;
}

static int *copy_of(speculation *f, int count, const int *slots) {
  int *copy = mix_ir_array(f->ir, count, sizeof *copy);
  if (copy) memcpy(copy, slots, sizeof *copy * (size_t)count);
  return copy;
}

/* A step with two results; the caller adds attributes or program. */
static bool begin_step(speculation *f, const mix_op *op, int input_count, const int *inputs,
                       const int outputs[2], const char *scope, mix_step *made) {
  *made = (mix_step){.op = op,
                     .input_count = input_count,
                     .output_count = 2,
                     .inputs = copy_of(f, input_count, inputs),
                     .outputs = copy_of(f, 2, outputs),
                     .guard = -1,
                     .scope = scope};
  return made->inputs && made->outputs;
}

/* finite, unproven = matmul_finite_bound(a, b, factor) */
static bool bound_step(speculation *f, const speculative *x, mix_step *made) {
  const mix_step *product = &f->plan->steps[x->product];
  const mix_program *program = product->program;
  int tested, factor;
  mix_program_only_tests_product(program, &tested, &factor);
  const int inputs[3] = {product->inputs[0], product->inputs[1],
                         factor < 0 ? -1 : product->inputs[program->loads[factor].input]};
  const int outputs[2] = {product->outputs[program->reduction_output], x->unproven};
  mix_finite_bound_attributes *attributes = mix_ir_alloc(f->ir, sizeof *attributes);
  if (!attributes) return false;
  attributes->dtype = program->loads[tested].dtype;
  if (!begin_step(f, bound_of(f, product), 2 + (factor >= 0), inputs, outputs, product->scope, made))
    return false;
  made->attributes = attributes;
  return true;
}

/* unfused, fused = apply and unproven, apply and not unproven */
static bool guard_step(speculation *f, const speculative *x, mix_step *made) {
  static mix_program_load loads[] = {{.input = 0, .dtype = MIX_BOOL}, {.input = 1, .dtype = MIX_BOOL}};
  static mix_instruction instructions[] = {
      {.opcode = MIX_OPCODE_LOGICAL_AND, .dtype = MIX_BOOL, .operands = {0, 1}},
      {.opcode = MIX_OPCODE_LOGICAL_NOT, .dtype = MIX_BOOL, .operands = {1}},
      {.opcode = MIX_OPCODE_LOGICAL_AND, .dtype = MIX_BOOL, .operands = {0, 3}}};
  static mix_program_store stores[] = {{.output = 0, .reg = 2}, {.output = 1, .reg = 4}};
  static const mix_program program = {.rank = 1,
                                      .dims = {1},
                                      .load_count = 2,
                                      .instruction_count = 3,
                                      .store_count = 2,
                                      .loads = loads,
                                      .instructions = instructions,
                                      .stores = stores};
  const mix_step *update = &f->plan->steps[x->update];
  const int inputs[2] = {update->guard, x->unproven}, outputs[2] = {x->unfused, x->fused};
  if (!begin_step(f, &mix_op_fused, 2, inputs, outputs, update->scope, made)) return false;
  made->program = &program;
  return true;
}

/* weights = matmul(a, b) with the update as epilogue, if fused */
static bool fused_step(speculation *f, const speculative *x, mix_step *made) {
  const mix_step *product = &f->plan->steps[x->product], *update = &f->plan->steps[x->update];
  int *inputs = mix_ir_array(f->ir, update->program->load_count + 1, sizeof *inputs), count = 0;
  if (!inputs) return false;
  inputs[count++] = product->inputs[0], inputs[count++] = product->inputs[1];
  for (int l = 0; l < update->program->load_count; l++)
    if (l != x->load) inputs[count++] = update->inputs[update->program->loads[l].input];
  *made = *product;
  made->program = x->fused_program;
  made->input_count = count;
  made->inputs = inputs;
  made->output_count = update->output_count;
  made->outputs = update->outputs;
  made->guard = x->recomputed ? update->guard : x->fused;
  made->writes_variable = true;
  return true;
}

/* The product becomes its test alone. */
static bool only_test(speculation *f, mix_step *product) {
  mix_program *program = mix_ir_alloc(f->ir, sizeof *program);
  int *outputs = copy_of(f, 1, &product->outputs[product->program->reduction_output]);
  if (!program || !outputs) return false;
  *program = *product->program;
  program->store_count = 0;
  program->reduction_output = 0;
  product->program = program;
  product->outputs = outputs;
  product->output_count = 1;
  return true;
}

/* Rebuilds the steps: the bound before each speculative product; the guards and the fused update before each
 * update. */
static bool rebuild(speculation *f, int count) {
  mix_plan *plan = f->plan;
  mix_step *steps = mix_ir_array(f->ir, plan->step_count + 3 * count, sizeof *steps);
  int made = 0;
  if (!steps) return false;
  for (int t = 0; t < plan->step_count; t++) {
    mix_step step = plan->steps[t];
    bool replaced = false;
    for (speculative *x = f->of; x < f->of + count; x++) {
      if (t == x->product) {
        if (!bound_step(f, x, &steps[made++])) return false;
        step.guard = x->unproven;
        if (x->recomputed && !only_test(f, &step)) return false;
      } else if (t == x->update && x->recomputed) {
        replaced = true;
        if (!fused_step(f, x, &steps[made++])) return false;
      } else if (t == x->update) {
        if (!guard_step(f, x, &steps[made++]) || !fused_step(f, x, &steps[made++])) return false;
        step.guard = x->unfused;
      }
    }
    if (!replaced) steps[made++] = step;
  }
  plan->steps = steps;
  plan->step_count = made;
  return true;
}

/* Finds the products whose updates are fused, and how many; -1 if memory ran out. */
static int examine_products(speculation *f) {
  int count = 0;
  for (int t = 0; t < f->plan->step_count; t++) {
    if (!examine_product(f, count, t)) return -1;
    count += f->of[count].update >= 0;
  }
  return count;
}

/* The gradients that would be stored if none were computed again. */
static size_t stored_bytes(const speculation *f, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; i++)
    if (f->of[i].recomputed) bytes += f->plan->slots[gradient_of(&f->plan->steps[f->of[i].product])].bytes;
  return bytes;
}

/* Where the backend prefers their memory to computing them again. */
static void store_gradients(speculation *f, int count) {
  const mix_context *context = f->ir->context;
  const mix_backend *backend = context->backend;
  if (context->memory == MIX_MEMORY_LEAST) return;
  if (backend->avoids_copies && backend->avoids_copies(context, stored_bytes(f, count))) return;
  for (int i = 0; i < count; i++) f->of[i].recomputed = false;
}

bool mix_plan_speculative_updates(mix_ir *ir, mix_plan *plan, const int *base) {
  speculation f = {.ir = ir, .plan = plan, .base = base, .base_count = ir->value_count};
  if (!mix_pass_wanted(ir, "speculative_update")) return true;
  if (!(f.of = mix_ir_array(ir, plan->step_count + 1, sizeof *f.of))) return false;
  const int count = examine_products(&f);
  if (count < 0) return false;
  store_gradients(&f, count);
  mix_slot *slots = mix_ir_array(ir, plan->slot_count + 3 * count + 1, sizeof *slots);
  if (!count || !slots) return slots != NULL;
  memcpy(slots, plan->slots, sizeof *slots * (size_t)plan->slot_count);
  plan->slots = slots;
  for (int i = 0; i < count; i++)
    f.of[i].unproven = add_bool(&f), f.of[i].fused = add_bool(&f), f.of[i].unfused = add_bool(&f);
  return rebuild(&f, count);
}
