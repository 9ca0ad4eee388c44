/* Each op in StableHLO: graphs of graphs/forms.txt, and all element-wise ops in all dtypes, run by a plug-in
 * and by the reference kernels on the same arguments. A case of the file is
 *
 *   == title | exact, or N ulp, or N ulp of largest
 *   a graph
 *
 * whose arguments are extremes where the title has that word.
 * ulp: of the result's dtype at the expected value, or at the largest one (sums in another order).
 * MIXTAPE_FORMS_REPORT names a file that gets a line of JSON for each result, what was measured, and lets all
 * cases run before the first that is out of its bound fails. MIXTAPE_FORMS_PART=K/N runs each Nth case. */
/* Holds docs/NUMERICS.md: The device xla. */
#include "compile/support.h"
#include "support/xla.h"

#include "backend/xla/emit.h"
#include "compile/compile.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <stdio.h>

enum { VALUES = 128, MAX_TEXT = 1 << 18, BYTES = 1 << 20 };

typedef struct bound {
  double ulps;
  bool of_largest;
  const char *op; /* of the result */
  /* Instead, the largest error at that element, from arguments 0 and 1 and the expected value; or NULL. */
  double (*error)(mix_dtype dtype, double a, double b, double expected);
} bound;

static FILE *report; /* NULL: the first error ends the case */
static char first_error[1024];

static int begin_xla(void **state) {
  if (begin_test(state)) return 1;
  first_error[0] = 0;
  if (xla_device()) mix_set_device(xla_device());
  return mix_error() != MIX_OK;
}
#define XLA(function) cmocka_unit_test_setup_teardown(function, begin_xla, end_test)

/* ---- running a graph ---- */

/* Arguments are numbers at the ends of functions' ranges, and beyond. */
static bool extreme;
static const double extremes[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 2.5, -3.5, 0.5, -0.5, 6, 7, -20,
                                  20, 60, -60, 80, -80, 1e-4, -1e-4, 3e-5, 500, -500, 30000, -0.9, 1e9, -1e9,
                                  4e9, 1e19, -1e19, 3e-12, 4.5, -4.5, 0.0625, 9.7, -9.75, 85, -85, 70000,
                                  /* barely above the middle of two numbers of float16, and of bfloat16 */
                                  0x1.0020000001p0, 0x1.0100000001p0};

/* Floats in [-1, 1), integers 0 to 2, both bools. */
static mix_memory *argument(mix_type type, int number) {
  const size_t bytes = mix_value_bytes(type.dtype, type.shape);
  mix_memory *memory = mix_memory_new(&mix_host_memory, bytes);
  void *data = mix_memory_map(memory, MIX_MAP_WRITE);
  const int64_t count = mix_shape_size(type.shape);
  mix_ir_fill(data, type.dtype, count, (uint64_t)number + 1);
  for (int64_t i = 0; i < count && mix_dtype_is_integer(type.dtype); i++)
    mix_store_integer(data, type.dtype, i, (i * 5 + number) % 3);
  for (int64_t i = 0; i < count && extreme && mix_dtype_is_floating(type.dtype); i++)
    mix_store_double(data, type.dtype, i, extremes[(i * (number + 1) + number) % COUNT(extremes)]);
  mix_memory_unmap(memory);
  return memory;
}

typedef struct outcome {
  int count;
  mix_type types[VALUES];
  void *data[VALUES];
} outcome;

static void free_outcome(outcome *o) {
  for (int r = 0; r < o->count; r++) free(o->data[r]);
}

static outcome run(const char *title, const char *text, const mix_backend *backend) {
  mix_ir *ir = mix_ir_read(title, text, strlen(text), BYTES);
  if (!ir) fail_msg("%s: %s\n%s", title, mix_error_message(), text);
  mix_memory *arguments[VALUES], *results[VALUES];
  const int argument_count = ir->argument_count;
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].source == MIX_IR_ARGUMENT)
      arguments[ir->nodes[n].index] =
          argument(ir->values[ir->nodes[n].first_output].type, ir->nodes[n].index);
  mix_context context = mix_context_default();
  context.backend = backend;
  mix_compiled *compiled = mix_compile(ir, &context, false);
  if (!compiled) fail_msg("%s: %s", title, mix_error_message());
  outcome o = {.count = compiled->ir->result_count};
  for (int r = 0; r < o.count; r++) {
    o.types[r] = compiled->results[r];
    results[r] = mix_memory_new(backend->memory, mix_value_bytes(o.types[r].dtype, o.types[r].shape));
  }
  if (!mix_compiled_run(compiled, arguments, results, NULL)) fail_msg("%s: %s", title, mix_error_message());
  for (int r = 0; r < o.count; r++) {
    const size_t bytes = mix_memory_bytes(results[r]);
    o.data[r] = malloc(bytes + 1);
    if (!mix_memory_copy_out(results[r], 0, o.data[r], bytes)) fail_msg("%s: %s", title, mix_error_message());
    mix_release(results[r]);
  }
  for (int i = 0; i < argument_count; i++) mix_release(arguments[i]);
  mix_compiled_free(compiled);
  return o;
}

/* ---- comparing ---- */

static double ulp_of(mix_dtype dtype, double x) {
  const int digits = dtype == MIX_FLOAT16 ? 11 : dtype == MIX_BFLOAT16 ? 8 : dtype == MIX_FLOAT32 ? 24 : 53;
  const int lowest = dtype == MIX_FLOAT16 ? -24 : dtype == MIX_FLOAT64 ? -1022 : -126;
  int exponent;
  frexp(x, &exponent);
  return ldexp(1, exponent - digits > lowest ? exponent - digits : lowest);
}

static bool within(double is, double expected, double size, mix_dtype dtype, bound b) {
  if (is == expected || (is != is && expected != expected)) return true;
  if (isinf(is) || isinf(expected)) return false;
  return fabs(is - expected) <= b.ulps * ulp_of(dtype, b.of_largest ? size : expected);
}

/* Of the argument of elementwise_in. */
static double operand(mix_type type, int number, int64_t i) {
  mix_memory *memory = argument(type, number);
  const double x = mix_load_double(mix_memory_map(memory, MIX_MAP_READ), type.dtype, i);
  mix_memory_unmap(memory);
  mix_release(memory);
  return x;
}

static void MIX_PRINTF(1, 2) fail_compare(const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (!report) fail_msg("%s", text);
  if (!first_error[0]) memcpy(first_error, text, sizeof text);
}

/* JSON has no infinity. */
static void put_number(const char *key, double value) {
  if (isfinite(value))
    fprintf(report, ", \"%s\": %.6g", key, value);
  else
    fprintf(report, ", \"%s\": null", key);
}

static void write_result(const char *title, const char *op, mix_type type, double ulps, double bound_ulps,
                         int64_t beyond) {
  if (!report) return;
  const char *bar = strchr(title, '|'), *end = strchr(title, '\n');
  const int length = (int)(bar ? bar - title - 1 : end ? end - title : (ptrdiff_t)strlen(title));
  fprintf(report, "{\"form\": \"%.*s\", \"op\": \"%s\", \"dtype\": \"%s\"", length, title, op ? op : "",
          mix_dtype_name(type.dtype));
  put_number("ulps", ulps);
  put_number("bound", bound_ulps);
  fprintf(report, ", \"elements\": %lld, \"beyond\": %lld}\n", (long long)mix_shape_size(type.shape),
          (long long)beyond);
}

static double ulps_apart(double is, double expected, double size, mix_dtype dtype, bound b) {
  if (is == expected || (is != is && expected != expected)) return 0;
  if (!isfinite(is) || !isfinite(expected)) return INFINITY;
  if (!mix_dtype_is_floating(dtype)) return fabs(is - expected);
  return fabs(is - expected) / ulp_of(dtype, b.of_largest ? size : expected);
}

static void compare(const char *title, const outcome *is, const outcome *expected, const bound *bounds) {
  for (int r = 0; r < expected->count; r++) {
    double furthest = 0;
    int64_t beyond = 0;
    const mix_type type = expected->types[r];
    const int64_t count = mix_shape_size(type.shape);
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
      const double x = fabs(mix_load_double(expected->data[r], type.dtype, i));
      if (x > largest && !isinf(x)) largest = x;
    }
    for (int64_t i = 0; i < count; i++) {
      const double a = mix_load_double(is->data[r], type.dtype, i),
                   b = mix_load_double(expected->data[r], type.dtype, i);
      bound used = bounds[r];
      if (!mix_dtype_is_floating(type.dtype)) used.ulps = 0;
      if (used.error)
        used.ulps =
            used.error(type.dtype, operand(type, 0, i), operand(type, 1, i), b) / ulp_of(type.dtype, b);
      const double apart = ulps_apart(a, b, largest, type.dtype, used);
      if (apart > furthest) furthest = apart;
      if (within(a, b, largest, type.dtype, used)) continue;
      beyond++;
      fail_compare("%s: element %lld of result %d, %s, is %.17g, not %.17g (%g ulp)", title, (long long)i, r,
                   used.op ? used.op : "", a, b, apart);
    }
    write_result(title, bounds[r].op, type, furthest, bounds[r].error ? NAN : bounds[r].ulps, beyond);
  }
}

/* What failed while the report was written fails the case at its end. */
static void fail_if_reported(void) {
  if (first_error[0]) fail_msg("%s", first_error);
}

/* Whether this process runs the case of the number. */
static bool is_in_part(int number) {
  int part = 1, parts = 1;
  const char *text = getenv("MIXTAPE_FORMS_PART");
  if (text && *text && (sscanf(text, "%d/%d", &part, &parts) != 2 || parts < 1 || part < 1 || part > parts))
    fail_msg("MIXTAPE_FORMS_PART is %s, not as in 1/4", text);
  return number % parts == part - 1;
}

static void check(const char *title, const char *text, const bound *bounds) {
  outcome is = run(title, text, mix_backend_current()), expected = run(title, text, &mix_backend_ref);
  compare(title, &is, &expected, bounds);
  free_outcome(&is);
  free_outcome(&expected);
}

/* ---- element-wise ops ---- */

enum { FUNCTION = 8 }; /* ulp of a function of XLA's, in float32 and float64 */

/* 1 - erf(a) with the error of erf; from 1 on exp(-a a) times a quotient: what a a loses in rounding is a a
 * units of the result. */
static double error_of_erfc(mix_dtype dtype, double a, double b, double expected) {
  (void)b;
  const double own = FUNCTION * ulp_of(dtype, expected);
  if (mix_dtype_is_16_bit(dtype)) return ulp_of(dtype, expected);
  if (a < 1) return own + FUNCTION * ulp_of(dtype, erf(a));
  return own + a * a * ulp_of(dtype, expected);
}

/* b (1 - a a), where XLA does not round a a: half its unit; then each side rounds the difference, in float32
 * for 16 bits, and the result. */
static double error_of_tanh_grad(mix_dtype dtype, double a, double b, double expected) {
  const mix_dtype wide = mix_dtype_is_16_bit(dtype) ? MIX_FLOAT32 : dtype;
  return fabs(b) * (ulp_of(wide, a * a) / 2 + ulp_of(wide, 1 - a * a)) + ulp_of(dtype, expected);
}

/* In float32 and float64: those of XLA's functions, and of products whose sum it computes with one rounding.
 * After rounding to 16 bits one unit is left of them. */
static double ulps_of(const mix_op *op, mix_dtype dtype) {
  switch (op->opcode) {
  case MIX_OPCODE_RSQRT:
  case MIX_OPCODE_EXP:
  case MIX_OPCODE_EXPM1:
  case MIX_OPCODE_LOG:
  case MIX_OPCODE_LOG1P:
  case MIX_OPCODE_SIN:
  case MIX_OPCODE_COS:
  case MIX_OPCODE_TANH:
  case MIX_OPCODE_SIGMOID:
  case MIX_OPCODE_ERF:
  case MIX_OPCODE_ELU:
  case MIX_OPCODE_SELU:
  case MIX_OPCODE_SOFTPLUS:
  case MIX_OPCODE_SOFTSIGN:
  case MIX_OPCODE_POWER:
  case MIX_OPCODE_ATAN2:
  case MIX_OPCODE_SOFTPLUS_GRAD:
  case MIX_OPCODE_SOFTSIGN_GRAD:
  case MIX_OPCODE_SELU_GRAD:
  case MIX_OPCODE_RSQRT_GRAD:
  case MIX_OPCODE_LEAKY_RELU:
  case MIX_OPCODE_LEAKY_RELU_GRAD: return mix_dtype_is_16_bit(dtype) ? 1 : FUNCTION;
  default: return 0;
  }
}

static mix_dtype dtype_of(char letter, mix_dtype dtype) { return letter == 'b' ? MIX_BOOL : dtype; }

static bool allows(const mix_op *op, mix_dtype dtype) {
  for (const char *p = op->signature; *p != '-'; p++)
    if (*p >= 'A' && *p <= 'Z') return mix_op_allows(op, 0, dtype);
  return dtype == MIX_BOOL;
}

/* One graph of all ops that have the dtype: arguments 0 and 1 of it, and 2 of bool. */
static void elementwise_in(mix_dtype dtype) {
  static char text[MAX_TEXT];
  mix_text out = {.text = text, .size = sizeof text};
  bound bounds[VALUES];
  int next = 4, count = 0;
  const char *name = mix_dtype_name(dtype);
  mix_text_put(&out,
               "%%0:%s(7, 9) = argument 0\n%%1:%s(7, 9) = argument 1\n%%2:bool(7, 9) = argument 2\n"
               "%%3:%s() = argument 3\n",
               name, name, name);
  for (int i = 0; mix_all_ops[i]; i++) {
    const mix_op *op = mix_all_ops[i];
    if (!(op->flags & MIX_OP_ELEMENTWISE) || !allows(op, dtype) || op->opcode == MIX_OPCODE_CAST) continue;
    if (op == &mix_op_bias_add || mix_opcode_draws(op->opcode) || mix_opcode_may_fail(op->opcode, dtype))
      continue;
    const char *result = strstr(op->signature, "->") + 2;
    mix_text_put(&out, "%%%d:%s(7, 9) = %s(", next++, mix_dtype_name(dtype_of(*result, dtype)), op->name);
    int operand = 0;
    for (const char *p = op->signature; *p != '-'; p++) {
      if (*p == ',') continue;
      const bool scalar = op->scalars >> operand & 1, choice = *p == 'b' && dtype != MIX_BOOL;
      mix_text_put(&out, "%s%%%d", operand ? ", " : "",
                   scalar   ? 3
                   : choice ? 2
                            : (operand == 2 || (operand == 1 && op->opcode != MIX_OPCODE_SELECT)));
      operand++;
    }
    mix_text_put(&out, ")%s\n", op->attributes_size ? " {alpha=0.2}" : "");
    bounds[count++] = (bound){.ulps = ulps_of(op, dtype),
                              .op = op->name,
                              .error = op->opcode == MIX_OPCODE_ERFC        ? error_of_erfc
                                       : op->opcode == MIX_OPCODE_TANH_GRAD ? error_of_tanh_grad
                                                                            : NULL};
  }
  mix_text_put(&out, "return");
  for (int i = 0; i < count; i++) mix_text_put(&out, "%s%%%d", i ? ", " : " ", 4 + i);
  mix_text_put(&out, "\n");
  check(name, text, bounds);
}

static void elementwise_ops_of_extremes(void **state) {
  (void)state;
  XLA_OR_SKIP();
  extreme = true;
  for (mix_dtype dtype = MIX_FLOAT16; dtype <= MIX_FLOAT64; dtype++)
    if (is_in_part(dtype)) elementwise_in(dtype);
  extreme = false;
  fail_if_reported();
}

static void elementwise_ops_in_all_dtypes(void **state) {
  (void)state;
  XLA_OR_SKIP();
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64, MIX_INT8,
                                     MIX_INT16,   MIX_INT32,   MIX_INT64,    MIX_UINT8,   MIX_BOOL};
  for (int i = 0; i < COUNT(dtypes); i++)
    if (is_in_part(i)) elementwise_in(dtypes[i]);
  fail_if_reported();
}

/* ---- the file ---- */

static char file_text[MAX_TEXT];

static bool read_file(void) {
  char path[1024];
  if (!getenv("MIXTAPE_TESTS_DIR")) return false;
  snprintf(path, sizeof path, "%s/backend/xla/graphs/forms.txt", getenv("MIXTAPE_TESTS_DIR"));
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(file_text, 1, sizeof file_text - 1, file);
  assert_true(size < sizeof file_text - 1);
  file_text[size] = 0;
  fclose(file);
  return true;
}

static void all_other_ops(void **state) {
  (void)state;
  XLA_OR_SKIP();
  if (!read_file()) SKIP("MIXTAPE_TESTS_DIR is not set");
  for (int i = 0; mix_all_ops[i]; i++) {
    char call[80];
    snprintf(call, sizeof call, " %s(", mix_all_ops[i]->name);
    if (!mix_xla_supports(mix_all_ops[i], MIX_FLOAT32)) continue; /* refused: test_emit.c */
    if (!(mix_all_ops[i]->flags & (MIX_OP_SOURCE | MIX_OP_ELEMENTWISE)) && !strstr(file_text, call))
      fail_msg("graphs/forms.txt has no%s)", call);
  }
  int cases = 0;
  for (char *at = strstr(file_text, "== "); at;) {
    char *title = at + 3, *body = strchr(title, '\n'), *bar = strchr(title, '|');
    at = strstr(body, "\n== ");
    if (at) at[1] = 0, at += 1;
    *body++ = 0;
    const bound given = {!strncmp(bar, "| exact", 7) ? 0 : atof(bar + 1), strstr(bar, "of largest") != NULL};
    bound bounds[VALUES];
    for (int i = 0; i < VALUES; i++) bounds[i] = given;
    extreme = strstr(title, "extremes") != NULL;
    if (is_in_part(cases)) check(title, body, bounds);
    cases++;
    if (at) *at = '=';
  }
  extreme = false;
  assert_true(cases > 40);
  fail_if_reported();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      XLA(elementwise_ops_in_all_dtypes),
      XLA(elementwise_ops_of_extremes),
      XLA(all_other_ops),
  };
  const char *path = getenv("MIXTAPE_FORMS_REPORT");
  if (path && *path && !(report = fopen(path, "w"))) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return report && fclose(report) ? 1 : failed;
}
