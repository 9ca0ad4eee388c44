/* Captured functions: a whole step is traced once for each input signature, compiled to one plan with a
 * static memory layout, and run as such. */
#ifndef MIXTAPE_FUNCTION_H
#define MIXTAPE_FUNCTION_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Builds the graph of the results (a list of tensors, or NULL for none) from the arguments. It runs once
 * for each signature, so its other effects (printing, counting) happen only then. Reading a value on the
 * host inside it is an error. */
typedef mix_list *(*mix_function_body)(void *context, mix_list *arguments);

#define MIX_ANY (-1)
typedef struct mix_function_options {
  size_t size;
  mix_function_body body; /* required */
  void *context;
  const char *name; /* NULL: "function" */
  /* false: every node rounds to its own dtype, and fusion changes no bit. true: 16-bit values inside one
   * fused program may keep the precision of float32, and products may be summed in another order. The same
   * error bound holds, and finite checks give the same answers (docs/NUMERICS.md). A function that is
   * traced inside a capture follows the captured function's setting. */
  bool jit_compile;
  /* Plans that are kept, one for each signature and setting of device, threads, policy and the like; the one
   * used longest ago goes first. 0: 32. */
  int max_signatures;
  /* For inference on batches of any size. 0: every shape of the arguments has a plan of its own. MIX_ANY:
   * axis 0 of every argument but scalars, and of every result, is the batch, and there are plans for 1, 2, 4,
   * ... rows up to max_batch.
   * - A batch is padded to the next of these with copies of its last row (zeros might be an error, as a label
   *   or an index), and the results are cut without a copy. The body sees the padded batch.
   * - A larger batch runs in parts of max_batch rows, whose results are put together.
   * - Row i of every value must depend on row i of the arguments alone. A call is a ValueError that names op
   *   and layer where a node mixes rows (a sum over the batch), or meets rows that the body made (a constant
   *   or noise with a row for each of the batch). So is one that changes a variable, or has a result without
   *   the batch. That values do not depend on the number of rows, which the body may read, is up to it.
   * - The bits of a result are those of the padded batch, which may not be those of the batch alone
   *   (docs/NUMERICS.md, "Padded batches").
   * - A call that is traced inline neither pads nor checks. */
  int64_t batch;
  /* With .batch = MIX_ANY: the rows of the largest plan. 0: 1024. */
  int64_t max_batch;
  /* true: nothing is captured. Each call runs the body on the arguments themselves, operation by operation,
   * so that a debugger stops in it and it may read and print values. The bits are those of a captured
   * function without jit_compile and graph rewrite; there is no plan to report or dump. ValueError beside
   * .batch. */
  bool run_eagerly;
} mix_function_options;
/* Creates a function. Capture happens at the first call with each signature of arguments. `context` must
 * live as long as the function. */
MIX_API mix_function *mix_function_with(const mix_function_options *options);
#ifndef __cplusplus
/* mix_function_new(body, context, .name = "step") */
#define mix_function_new(function_body, ...)                                                                 \
  mix_function_with(MIX_ARGUMENTS("mix_function_new", "context", #__VA_ARGS__, mix_function_options,         \
                                  .body = function_body, .context = __VA_ARGS__))
#endif
/* Runs the function and returns a list of finished tensors. Arguments may be nested lists and dicts; the
 * body gets them nested alike, dicts sorted by name, and how they are nested is part of the signature. A
 * second concurrent call returns NULL with MIX_BUSY. Inside another capture, or under a tape, the function
 * is traced inline. */
MIX_API mix_list *mix_function_call(mix_function *function, mix_list *arguments);

/* Drops all plans and their memory; the next call captures again. MIX_BUSY during a call. */
MIX_API mix_status mix_function_clear(mix_function *function);

/* Statistics of the plan of the latest call. */
typedef struct mix_plan_report {
  int nodes;             /* steps of the plan */
  int captured_nodes;    /* nodes of the captured graph */
  int barriers;          /* thread barriers in a run */
  size_t arena_bytes;    /* intermediate values; disjoint live ranges share memory */
  size_t unshared_bytes; /* the same without sharing */
  size_t variable_bytes;
  size_t argument_bytes;
  size_t result_bytes;
  size_t constant_bytes;
  size_t workspace_bytes; /* scratch memory of kernels (packed panels) and threads */
  size_t peak_bytes;      /* the total */
  /* The operands and results of all steps, each counted once per step, or once for several steps that run
   * together, some rows at a time: the memory traffic of a run without caches. What only such steps use does
   * not count. Of a table of which rows are gathered, or replaced in place, these rows count. Guarded steps
   * that a run may skip are counted too. */
  size_t moved_bytes;
  size_t copy_bytes; /* of variable_bytes: the 16-bit copies of weights */
  /* The least total that these steps allow: peak_bytes without copy_bytes, with the intermediate values that
   * are alive together at the worst moment, and without those of a trained weight's shape: casts of weights,
   * which products can round as they read them, and gradients, which updates can take as they come. */
  size_t least_bytes;
  /* Of variable_bytes: what lies in the mapping of a file, which the steps do not write. The system takes
   * such pages back where memory is short: peak_bytes without them is what must be there. */
  size_t file_bytes;
  /* What runs a second time to fit a budget (mix_set_memory_budget): steps, and the bytes of their results,
   * which are not kept in between. */
  int recomputed_nodes;
  size_t recomputed_bytes;
} mix_plan_report;
/* Fills the first report_size bytes of `report`; pass sizeof(mix_plan_report). RuntimeError before the
 * first call. */
MIX_API mix_status mix_function_report(mix_function *function, mix_plan_report *report, size_t report_size);
/* A stage of the compilation of the latest call, as text. The text belongs to the function and lives until
 * its next call or the next dump. stage:
 *   "captured"     the graph as the body built it
 *   a pass         the graph after the pass of that name, such as "constant_fold" ("after constant_fold" is
 *                  the same, "before constant_fold" the graph before it). The passes run again for this, so
 *                  device, switched-off passes and graph rewrite must still be those of the call. A pass
 *                  that is switched off changes nothing.
 *   "passes"       the graph after all passes
 *   "plan"         each step with kernel, shapes, dtypes and place in memory, and the values alive at the
 *                  peak
 * Graphs have the form of docs/GRAPH_TEXT.md, which `mixtape graph` reads. NULL with MIX_VALUE_ERROR for
 * another stage (the message lists all), and with MIX_RUNTIME_ERROR before the first call. */
MIX_API const char *mix_function_dump(mix_function *function, const char *stage);

MIX_END_DECLARATIONS
#endif
