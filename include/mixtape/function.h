/* Captured functions: a whole step traced once for each input signature and run as one plan with one static memory layout. */
#ifndef MIXTAPE_FUNCTION_H
#define MIXTAPE_FUNCTION_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the graph of the results (a list of tensors, or NULL for none) from the arguments. Runs once for each signature: what it
 * does besides building graph (printing, counting) happens only then. Reading a value on the host inside it is an error. */
typedef mix_list *(*mix_function_body)(void *context, mix_list *arguments);

typedef struct mix_function_options {
  size_t size;
  mix_function_body body; /* required */
  void *context;
  const char *name;       /* NULL: "function" */
  /* false: every node rounds to its own dtype, and what is fused with what changes no bit. true: 16-bit values that stay inside one fused
   * program may keep float32's digits, products may be summed in another order; never further from the exact result than the same bound,
   * and finite checks see what they would see otherwise (docs/NUMERICS.md). Traced inline, a function follows the one that is
   * captured. */
  bool jit_compile;
} mix_function_options;
/* Captures nothing yet: the first call with each signature of arguments does. context must live as long as the function. */
MIX_API mix_function *mix_function_with(const mix_function_options *options);
#ifndef __cplusplus
/* mix_function_new(body, context, .name = "step") */
#define mix_function_new(function_body, ...)                                                                                   \
  mix_function_with(&(const mix_function_options){.size = sizeof(mix_function_options), .body = function_body, .context = __VA_ARGS__})
#endif
/* Runs at once. Returns a list of finished tensors. A second concurrent call returns NULL with MIX_BUSY. Inside another capture,
 * or under a tape, it is traced inline. */
MIX_API mix_list *mix_function_call(mix_function *function, mix_list *arguments);

/* What the plan of the latest call looks like. */
typedef struct mix_plan_report {
  int nodes;              /* steps that the plan runs */
  int captured_nodes;     /* nodes of the captured graph */
  int barriers;           /* thread barriers in a run */
  size_t arena_bytes;     /* intermediate values, live ranges sharing memory */
  size_t unshared_bytes;  /* what they would take without sharing */
  size_t variable_bytes;
  size_t argument_bytes;
  size_t result_bytes;
  size_t constant_bytes;
  size_t workspace_bytes; /* scratch of kernels (packed panels) */
  size_t peak_bytes;      /* all of it */
  size_t moved_bytes;     /* operands and results of the steps, each once a step: what a run asks of memory where no cache helps,
                           * and of two ways on both */
} mix_plan_report;
/* Fills the first report_size bytes, sizeof(mix_plan_report). RuntimeError before the first call. */
MIX_API mix_status mix_function_report(mix_function *function, mix_plan_report *report, size_t report_size);
/* What the latest call compiled, at a stage of its compilation, as text. The text belongs to the function and lives until the next call of
 * this or of the function. stage:
 *   "captured"     the graph as the body built it
 *   "fold", ...    the graph after that pass ("after fold" is the same), or "before fold"; one that is switched off changes nothing. The
 *                  passes are made to run again for it, so device, switched-off passes and graph rewrite must still be those of the call
 *   "passes"       the graph after all passes
 *   "plan"         each step with kernel, shapes, dtypes and place in memory, and what lives at the peak
 * Graphs have the form of docs/ARCHITECTURE.md, which `mixtape graph` reads back. NULL with MIX_VALUE_ERROR for another stage (the message
 * lists all), with MIX_RUNTIME_ERROR before the first call. */
MIX_API const char *mix_function_dump(mix_function *function, const char *stage);

#ifdef __cplusplus
}
#endif
#endif
