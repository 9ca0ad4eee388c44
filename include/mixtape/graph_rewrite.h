/* Mixed precision without policies: the automatic rewrite of captured functions. A policy chooses dtypes
 * when layers are called; the rewrite chooses them when a float32 graph is compiled. Products and the
 * operations between them become 16-bit, operations that would lose too much precision stay float32, and
 * casts are inserted between them. Only functions are rewritten (mix_function, training, evaluation), not
 * operations that are evaluated one by one.
 *
 * The decisions and lists are those of TensorFlow's auto_mixed_precision pass. Its environment variables
 * TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL, _ALLOWLIST_ADD, _DENYLIST_REMOVE and so on are read at
 * every capture; a change makes functions capture again. MIXTAPE_VERBOSE=amp logs every op with the reason
 * for its dtype. */
#ifndef MIXTAPE_GRAPH_REWRITE_H
#define MIXTAPE_GRAPH_REWRITE_H

#include <mixtape/optimizer.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_graph_rewrite_options {
  size_t size;
  mix_optimizer *optimizer; /* required; ValueError if it is not an optimizer, or already scales the loss */
  double fixed_loss_scale;  /* 0: dynamic, the default */
  /* Instead of fixed_loss_scale. For tf_keras and keras3 a dynamic scale must have the multiplier 2
   * (ValueError). */
  mix_loss_scale *loss_scale;
} mix_graph_rewrite_options;

/* Wraps the optimizer in loss scaling, and rewrites every function captured from now on to float16.
 * Returns the wrapper. ValueError, with nothing changed, if a mixed policy is set; while the rewrite is
 * enabled no mixed policy can be set. The loss is scaled only if gradients come from the wrapper
 * (mix_optimizer_minimize, or mix_optimizer_compute_gradients and then mix_optimizer_apply_gradients) or
 * from mix_model_fit. */
MIX_API mix_optimizer *
mix_enable_mixed_precision_graph_rewrite_with(const mix_graph_rewrite_options *options);
#ifndef __cplusplus
/* mix_enable_mixed_precision_graph_rewrite(mix_sgd(), .fixed_loss_scale = 128) */
#define mix_enable_mixed_precision_graph_rewrite(...)                                                        \
  mix_enable_mixed_precision_graph_rewrite_with(                                                             \
      MIX_ARGUMENTS("mix_enable_mixed_precision_graph_rewrite", "optimizer", #__VA_ARGS__,                   \
                    mix_graph_rewrite_options, .optimizer = __VA_ARGS__))
#endif
/* All defaults, with `size` set; for C++. */
MIX_API mix_graph_rewrite_options mix_graph_rewrite_defaults(void);
/* Stops rewriting functions that are captured from now on. Wrapped optimizers keep scaling. Logs only a
 * warning if the rewrite is not enabled. */
MIX_API mix_status mix_disable_mixed_precision_graph_rewrite(void);

/* Sets the rewrite without an optimizer: to "float16", to "bfloat16" (which needs no loss scaling), or off
 * (NULL). ValueError for another name. The rewrite does not count as enabled then: as in TensorFlow, a mixed
 * policy beside it is no error; it is a warning in the log. */
MIX_API mix_status mix_set_graph_rewrite(const char *dtype);
/* The dtype to which captured functions are rewritten; MIX_DTYPE_NONE: no rewrite. */
MIX_API mix_dtype mix_graph_rewrite_dtype(void);

/* What the rewrite to a dtype (NULL: "float16") makes of the function that was called last, as a table: each
 * op with its list, its dtype before and after, and the reason; the casts that it inserts; totals. Nothing is
 * compiled, and whether the rewrite is on does not matter. The function should be one of float32. The text
 * lives until the next call of this with the same function. RuntimeError before the first call of the
 * function. */
MIX_API const char *mix_function_explain_rewrite(mix_function *function, const char *dtype);

MIX_END_DECLARATIONS
#endif
