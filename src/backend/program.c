/* Element-wise programs as text, and the op that carries them. */
#include "backend/program.h"
#include "backend/plan.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const mix_op mix_op_fused = {.name = "fused"};

typedef struct sink {
  char *text;
  size_t size, used;
} sink;

static void MIX_PRINTF(2, 3) put(sink *to, const char *format, ...) {
  if (to->used >= to->size) return;
  va_list list;
  va_start(list, format);
  int written = vsnprintf(to->text + to->used, to->size - to->used, format, list);
  va_end(list);
  if (written > 0) to->used += (size_t)written;
}

static void put_numbers(sink *to, int count, const int64_t *numbers) {
  for (int i = 0; i < count; i++) put(to, "%s%" PRId64, i ? ", " : "", numbers[i]);
}

static bool has_immediate(mix_opcode opcode) { return opcode == MIX_OPCODE_LEAKY_RELU || opcode == MIX_OPCODE_LEAKY_RELU_GRAD; }

void mix_program_print(const mix_program *program, char *text, size_t size) {
  static const char *const reductions[] = {"nothing", "all_finite", "sum"};
  sink to = {text, size, 0};
  if (size) text[0] = 0;
  put(&to, "over (");
  put_numbers(&to, program->rank, program->dims);
  put(&to, ")\n");
  for (int i = 0; i < program->load_count; i++) {
    const mix_program_load *load = &program->loads[i];
    put(&to, "  r%d = %s ", i, mix_dtype_name(load->dtype));
    if (load->input == MIX_FROM_ACCUMULATOR)
      put(&to, "product\n");
    else {
      put(&to, "load %d strides (", load->input);
      put_numbers(&to, program->rank, load->strides);
      put(&to, ")\n");
    }
  }
  for (int i = 0; i < program->instruction_count; i++) {
    const mix_instruction *instruction = &program->instructions[i];
    put(&to, "  r%d = %s %s", program->load_count + i, mix_dtype_name(instruction->dtype), mix_opcode_name(instruction->opcode));
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++) put(&to, "%s r%d", k ? "," : "", instruction->operands[k]);
    if (has_immediate(instruction->opcode)) put(&to, ", %g", instruction->immediate);
    put(&to, "\n");
  }
  for (int i = 0; i < program->store_count; i++) put(&to, "  store r%d -> %d\n", program->stores[i].reg, program->stores[i].output);
  if (program->reduction != MIX_REDUCE_NOTHING)
    put(&to, "  %s of r%d -> %d\n", reductions[program->reduction], program->reduced, program->reduction_output);
}
