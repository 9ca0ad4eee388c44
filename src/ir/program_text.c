/* Text form of element-wise programs: writing, reading and checking. */
#include "ir/program.h"

#include "ops/attributes.h"
#include "ops/stochastic_round.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const reductions[] = {"nothing", "all_finite", "sum", "mean"};

/* ---- writing ---- */

static void put_numbers(mix_text *text, int count, const int64_t *numbers) {
  for (int i = 0; i < count; i++) mix_text_put(text, "%s%" PRId64, i ? ", " : "(", numbers[i]);
  mix_text_put(text, ")");
}

void mix_program_put(const mix_program *program, const char *indent, mix_text *text) {
  mix_text_put(text, "%sover ", indent);
  put_numbers(text, program->rank, program->dims);
  mix_text_put(text, "\n");
  for (int i = 0; i < program->load_count; i++) {
    const mix_program_load *load = &program->loads[i];
    mix_text_put(text, "%s  r%d = %s ", indent, i, mix_dtype_name(load->dtype));
    if (load->input == MIX_FROM_ACCUMULATOR) {
      mix_text_put(text, "product\n");
      continue;
    }
    mix_text_put(text, "load %d strides ", load->input);
    put_numbers(text, program->rank, load->strides);
    if (load->offset) mix_text_put(text, " from %" PRId64, load->offset);
    mix_text_put(text, "\n");
  }
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    mix_text_put(text, "%s  r%d = %s %s", indent, program->load_count + i, mix_dtype_name(instruction->dtype),
                 mix_opcode_name(instruction->opcode));
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
      mix_text_put(text, "%s r%d", k ? "," : "", instruction->operands[k]);
    if (mix_opcode_has_immediate(instruction->opcode)) {
      mix_text_put(text, ", ");
      mix_text_put_number(text, instruction->immediate);
    }
    mix_text_put(text, "\n");
  }
  for (int i = 0; i < program->store_count; i++)
    mix_text_put(text, "%s  store r%d -> %d\n", indent, program->stores[i].reg, program->stores[i].output);
  if (program->reduction != MIX_REDUCE_NOTHING)
    mix_text_put(text, "%s  %s of r%d -> %d\n", indent, reductions[program->reduction], program->reduced,
                 program->reduction_output);
  if (program->row) mix_text_put(text, "%s  in rows of %" PRId64 "\n", indent, program->row);
  for (int i = 0; i < program->sum_count; i++) {
    const mix_program_sum *sum = &program->sums[i];
    mix_text_put(text, "%s  %s of r%d -> %d by %s of %" PRId64 "\n", indent, reductions[sum->kind], sum->reg,
                 sum->output, sum->row ? "rows" : "columns", sum->row ? sum->row : sum->column);
  }
}

/* ---- reading ---- */

void mix_program_read_begin(mix_program_reading *reading) {
  memset(reading, 0, sizeof *reading);
  reading->program.loads = reading->loads;
  reading->program.instructions = reading->instructions;
  reading->program.stores = reading->stores;
  reading->program.sums = reading->sums;
}

static bool scan_small(mix_scan *line, int *number) {
  int64_t wide;
  if (!mix_scan_integer(line, &wide) || wide < 0 || wide > INT32_MAX) return false;
  *number = (int)wide;
  return true;
}

static bool scan_numbers(mix_scan *line, int64_t numbers[MIX_MAX_RANK], int *count) {
  *count = 0;
  if (!mix_scan_text(line, "(")) return false;
  do {
    if (*count == MIX_MAX_RANK || !mix_scan_integer(line, &numbers[*count]) || numbers[*count] < 0)
      return false;
    ++*count;
  } while (mix_scan_text(line, ","));
  return mix_scan_text(line, ")");
}

/* "r7": the number of a register. */
static bool scan_register(mix_scan *line, int *number) {
  mix_scan_blanks(line);
  if (line->at == line->end || *line->at != 'r') return false;
  line->at++;
  return line->at < line->end && *line->at >= '0' && *line->at <= '9' && scan_small(line, number);
}

static bool read_load(mix_program_reading *reading, mix_scan *line, mix_dtype dtype, bool product) {
  mix_program *program = &reading->program;
  if (program->instruction_count || program->load_count == MIX_PROGRAM_MAX) return false;
  mix_program_load *load = &reading->loads[program->load_count++];
  *load = (mix_program_load){.input = MIX_FROM_ACCUMULATOR, .dtype = dtype};
  if (product) { /* strides of the full result */
    int64_t stride = 1;
    for (int d = program->rank - 1; d >= 0; d--) {
      load->strides[d] = program->dims[d] == 1 ? 0 : stride;
      if (__builtin_mul_overflow(stride, program->dims[d], &stride)) return false;
    }
    return true;
  }
  int rank;
  return scan_small(line, &load->input) && mix_scan_text(line, "strides") &&
         scan_numbers(line, load->strides, &rank) && rank == program->rank &&
         (!mix_scan_text(line, "from") || (mix_scan_integer(line, &load->offset) && load->offset > 0));
}

static mix_opcode opcode_of(const char *name) {
  const mix_op *op = mix_op_by_name(name);
  bool code =
      op && (op->flags & MIX_OP_ELEMENTWISE) && !strcmp(mix_opcode_name((mix_opcode)op->opcode), name);
  return code ? (mix_opcode)op->opcode : MIX_OPCODE_NONE;
}

static bool read_instruction(mix_program_reading *reading, mix_scan *line, mix_dtype dtype,
                             const char *name) {
  mix_program *program = &reading->program;
  if (program->instruction_count == MIX_PROGRAM_MAX) return false;
  mix_instruction *instruction = &reading->instructions[program->instruction_count++];
  *instruction = (mix_instruction){.opcode = opcode_of(name), .dtype = dtype};
  if (instruction->opcode == MIX_OPCODE_NONE) return false;
  for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
    if ((k && !mix_scan_text(line, ",")) || !scan_register(line, &instruction->operands[k])) return false;
  return !mix_opcode_has_immediate(instruction->opcode) ||
         (mix_scan_text(line, ",") && mix_scan_number(line, &instruction->immediate));
}

static bool read_register(mix_program_reading *reading, mix_scan *line) {
  int number;
  mix_dtype dtype;
  char name[40];
  if (!scan_register(line, &number) ||
      number != reading->program.load_count + reading->program.instruction_count)
    return false;
  if (!mix_scan_text(line, "=") || !mix_scan_dtype(line, &dtype) || !mix_scan_name(line, name, sizeof name))
    return false;
  if (!strcmp(name, "load") || !strcmp(name, "product"))
    return read_load(reading, line, dtype, name[0] == 'p');
  return read_instruction(reading, line, dtype, name);
}

/* Are its stores complete? */
static bool ends(const mix_program *program) { return program->reduction || program->sum_count; }

static bool read_store(mix_program_reading *reading, mix_scan *line) {
  mix_program *program = &reading->program;
  if (program->store_count == MIX_PROGRAM_MAX || ends(program)) return false;
  mix_program_store *store = &reading->stores[program->store_count++];
  return scan_register(line, &store->reg) && mix_scan_text(line, "->") && scan_small(line, &store->output);
}

static bool read_reduction(mix_program_reading *reading, mix_scan *line, mix_reduction_kind reduction) {
  mix_program *program = &reading->program;
  mix_program_sum sum = {.kind = reduction};
  if (program->reduction || !mix_scan_text(line, "of") || !scan_register(line, &sum.reg) ||
      !mix_scan_text(line, "->") || !scan_small(line, &sum.output))
    return false;
  if (reduction != MIX_REDUCE_ALL_FINITE && mix_scan_text(line, "by")) {
    const bool rows = mix_scan_text(line, "rows");
    if ((!rows && !mix_scan_text(line, "columns")) || !mix_scan_text(line, "of") ||
        !mix_scan_integer(line, rows ? &sum.row : &sum.column) || program->sum_count == MIX_PROGRAM_SUMS)
      return false;
    reading->sums[program->sum_count++] = sum;
    return true;
  }
  if (program->sum_count) return false;
  program->reduction = reduction;
  program->reduced = sum.reg;
  program->reduction_output = sum.output;
  return true;
}

static bool read_line(mix_program_reading *reading, mix_scan *line) {
  mix_program *program = &reading->program;
  if (!reading->begun) {
    reading->begun = true;
    return mix_scan_text(line, "over") && scan_numbers(line, program->dims, &program->rank) &&
           program->rank > 0;
  }
  if (mix_scan_text(line, "store")) return read_store(reading, line);
  if (mix_scan_text(line, "all_finite")) return read_reduction(reading, line, MIX_REDUCE_ALL_FINITE);
  if (mix_scan_text(line, "sum")) return read_reduction(reading, line, MIX_REDUCE_TO_SUM);
  if (mix_scan_text(line, "mean")) return read_reduction(reading, line, MIX_REDUCE_TO_MEAN);
  if (mix_scan_text(line, "in"))
    return program->reduction > MIX_REDUCE_ALL_FINITE && !program->row && mix_scan_text(line, "rows") &&
           mix_scan_text(line, "of") && mix_scan_integer(line, &program->row) && program->row > 0;
  return !program->store_count && !ends(program) && read_register(reading, line);
}

bool mix_program_read_line(mix_program_reading *reading, mix_scan *line, char *problem, size_t size) {
  if (read_line(reading, line) && mix_scan_done(line)) return true;
  snprintf(
      problem, size,
      "no line of a program; expected 'over (dims)', then 'rN = dtype load INPUT strides (...)', at its "
      "end 'from ELEMENT', or 'rN = dtype product', 'rN = dtype operation rA, rB', 'store rN -> OUTPUT', "
      "'all_finite of rN -> OUTPUT' (sum, mean), 'in rows of COUNT', 'sum of rN -> OUTPUT by rows of COUNT' "
      "(columns), registers numbered in order");
  return false;
}

/* ---- checking ---- */

#define WRONG(...) return snprintf(problem, size, __VA_ARGS__), false

static bool check_load(const mix_program *program, int l, int64_t elements, int input_count,
                       const mix_type *inputs, char *problem, size_t size) {
  const mix_program_load *load = &program->loads[l];
  if (load->input == MIX_FROM_ACCUMULATOR) return true;
  if (load->input >= input_count) WRONG("r%d loads operand %d of %d", l, load->input, input_count);
  if (inputs[load->input].dtype != load->dtype)
    WRONG("r%d loads %s from %s", l, mix_dtype_name(load->dtype), mix_dtype_name(inputs[load->input].dtype));
  int64_t last = load->offset, step;
  bool empty = false;
  for (int d = 0; d < program->rank; d++) {
    empty |= program->dims[d] == 0;
    if (__builtin_mul_overflow(load->strides[d], program->dims[d] - 1, &step) ||
        __builtin_add_overflow(last, step, &last))
      WRONG("the strides of r%d are too large", l);
  }
  if (empty) return true;
  if (last >= mix_shape_size(inputs[load->input].shape))
    WRONG("the strides of r%d lead out of operand %d", l, load->input);
  /* An operand as large as the space is read in its own order, because a result may overwrite it. */
  int64_t stride = 1;
  for (int d = program->rank - 1; d >= 0; stride *= program->dims[d--])
    if (elements == mix_shape_size(inputs[load->input].shape) && program->dims[d] != 1 &&
        load->strides[d] != stride)
      WRONG("the strides of r%d do not follow operand %d", l, load->input);
  return true;
}

/* float16, bfloat16 and float32 have one representation in registers, so jit_compile may mix them. */
static bool alike(mix_dtype a, mix_dtype b) {
  bool small_a = mix_dtype_is_floating(a) && a != MIX_FLOAT64,
       small_b = mix_dtype_is_floating(b) && b != MIX_FLOAT64;
  return a == b || (small_a && small_b);
}

/* Dtypes as the op of that name allows them. */
static bool check_instruction(const mix_program *program, int i, char *problem, size_t size) {
  static const char kinds[MIX_OPCODE_COUNT] = {
#define KIND_S 1
#define KIND_I 1
#define KIND_B 2
#define KIND_L 2
#define KIND_C 3
#define KIND_R 4
#define ROW(name, code, operands, kind, ...) [MIX_OPCODE_##code] = KIND_##kind,
      MIX_ELEMENTWISE_OPS(ROW)
#undef ROW
  };
  const mix_instruction *instruction = &program->instructions[i];
  int reg = program->load_count + i, count = mix_opcode_operands(instruction->opcode);
  for (int k = 0; k < count; k++)
    if (instruction->operands[k] >= reg)
      WRONG("r%d reads r%d, which comes later", reg, instruction->operands[k]);
  bool select = instruction->opcode == MIX_OPCODE_SELECT;
  if (select && mix_program_register_dtype(program, instruction->operands[0]) != MIX_BOOL)
    WRONG("r%d selects by no bool", reg);
  mix_dtype operand = mix_program_register_dtype(program, instruction->operands[select]);
  const bool draws = mix_opcode_draws(instruction->opcode);
  for (int k = 1; draws && k < count; k++)
    if (mix_program_register_dtype(program, instruction->operands[k]) != MIX_INT64)
      WRONG("r%d draws from no int64", reg);
  if (draws && !mix_stream_exists(instruction->immediate)) WRONG("r%d draws from no stream", reg);
  if (draws && !(alike(operand, MIX_FLOAT32) && alike(instruction->dtype, MIX_FLOAT32)))
    WRONG("r%d cannot be %s", reg, mix_dtype_name(instruction->dtype));
  if (draws) return true;
  for (int k = select; k < count; k++)
    if (!alike(mix_program_register_dtype(program, instruction->operands[k]), operand))
      WRONG("the operands of r%d differ in dtype", reg);
  int kind = kinds[instruction->opcode];
  if ((kind == KIND_S && !alike(instruction->dtype, operand)) ||
      (kind == KIND_B && instruction->dtype != MIX_BOOL))
    WRONG("r%d cannot be %s", reg, mix_dtype_name(instruction->dtype));
  const mix_op *op = mix_op_by_name(mix_opcode_name(instruction->opcode));
  bool logical = strchr(op->signature, 'b') && op->signature[0] == 'b';
  if (logical && !select ? operand != MIX_BOOL : !mix_op_allows(op, 0, operand))
    WRONG("%s cannot take %s (r%d)", op->name, mix_dtype_name(operand), reg);
  return true;
}

static bool check_result(const mix_program *program, int reg, int output, int output_count, bool *written,
                         char *problem, size_t size) {
  if (reg >= program->load_count + program->instruction_count) WRONG("there is no r%d", reg);
  if (output >= output_count || written[output]) WRONG("result %d is not there, or is written twice", output);
  return written[output] = true;
}

bool mix_program_check(const mix_program *program, int input_count, const mix_type *inputs, int output_count,
                       const mix_type *outputs, char *problem, size_t size) {
  bool written[MIX_PROGRAM_MAX + 1] = {false};
  int done = 0;
  mix_shape space = {.rank = program->rank};
  memcpy(space.dims, program->dims, sizeof space.dims);
  int64_t elements = program->rank ? mix_shape_checked_size(space) : -1;
  if (elements < 0) WRONG("there is no space to run it over");
  if (output_count > MIX_PROGRAM_MAX) WRONG("more than %d results", MIX_PROGRAM_MAX);
  for (int l = 0; l < program->load_count; l++)
    if (!check_load(program, l, elements, input_count, inputs, problem, size)) return false;
  for (int i = 0; i < program->instruction_count; i++)
    if (!check_instruction(program, i, problem, size)) return false;
  for (int s = 0; s < program->store_count; s++, done++) {
    int output = program->stores[s].output, reg = program->stores[s].reg;
    if (!check_result(program, reg, output, output_count, written, problem, size)) return false;
    if (mix_program_register_dtype(program, reg) != outputs[output].dtype ||
        mix_shape_size(outputs[output].shape) != elements)
      WRONG("r%d does not fill result %d", reg, output);
  }
  if (program->reduction) {
    int output = program->reduction_output;
    if (!check_result(program, program->reduced, output, output_count, written, problem, size)) return false;
    mix_dtype reduced = mix_program_register_dtype(program, program->reduced);
    mix_dtype dtype = program->reduction == MIX_REDUCE_ALL_FINITE ? MIX_BOOL : reduced;
    bool whole = program->reduction == MIX_REDUCE_ALL_FINITE;
    int64_t sums = program->row ? elements / program->row : 1,
            size_of_output = mix_shape_size(outputs[output].shape);
    bool fits = whole ? outputs[output].shape.rank == 0
                      : size_of_output == sums && (!program->row || elements % program->row == 0);
    if (outputs[output].dtype != dtype || !fits || !mix_dtype_is_floating(reduced))
      WRONG("result %d cannot be the %s of r%d", output, reductions[program->reduction], program->reduced);
    done++;
  }
  if (program->sum_count && (program->reduction || !elements ||
                             !mix_program_sums_fit(program->sums, program->sum_count, elements, 0)))
    WRONG("one program cannot end in these sums");
  for (int i = 0; i < program->sum_count; i++, done++) {
    const mix_program_sum *sum = &program->sums[i];
    if (!check_result(program, sum->reg, sum->output, output_count, written, problem, size)) return false;
    const mix_type *output = &outputs[sum->output];
    const mix_dtype dtype = mix_program_register_dtype(program, sum->reg);
    if (output->dtype != dtype || !mix_dtype_is_floating(dtype) ||
        mix_shape_size(output->shape) != (sum->row ? elements / sum->row : sum->column))
      WRONG("result %d cannot be the %s of r%d", sum->output, reductions[sum->kind], sum->reg);
  }
  if (done != output_count) WRONG("%d of %d results are written", done, output_count);
  return true;
}
