/* Mixed precision without policies: the automatic rewrite of captured functions. Where a policy chooses dtypes while layers are called, the
 * rewrite chooses them when a float32 graph is compiled: products and what stands between them become 16-bit, what would lose too much stays
 * float32, casts go between. Only functions are rewritten (mix_function, training, evaluation), never what is computed op by op.
 *
 * Its decisions are those of TensorFlow's automatic mixed precision pass, with its lists; its environment variables
 * TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL, _ALLOWLIST_ADD, _DENYLIST_REMOVE and so on are read at every capture, and a change of
 * them makes a function capture anew.
 * MIXTAPE_VERBOSE=amp logs every op with the reason of its dtype. */
#ifndef MIXTAPE_GRAPH_REWRITE_H
#define MIXTAPE_GRAPH_REWRITE_H

#include <mixtape/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mix_graph_rewrite_options {
  size_t size;
  mix_optimizer *optimizer;   /* required; ValueError for what is none, or scales the loss already */
  double fixed_loss_scale;    /* 0: dynamic, as by default */
  mix_loss_scale *loss_scale; /* instead; for tf_keras and keras3 a dynamic one must have the multiplier 2 (ValueError) */
} mix_graph_rewrite_options;

/* Wraps the optimizer in loss scaling and has every function captured from now on rewritten to float16; returns the wrapper. ValueError, with
 * nothing changed, while a mixed policy is in force; while the rewrite is enabled no mixed policy can be set. Gradients must come from the
 * wrapper (mix_optimizer_minimize; mix_optimizer_compute_gradients, then mix_optimizer_apply_gradients) or from training by mix_model_fit, else
 * the loss is not scaled. */
MIX_API mix_optimizer *mix_enable_mixed_precision_graph_rewrite_with(const mix_graph_rewrite_options *options);
#ifndef __cplusplus
/* mix_enable_mixed_precision_graph_rewrite(mix_sgd(), .fixed_loss_scale = 128) */
#define mix_enable_mixed_precision_graph_rewrite(...)                                                                          \
  mix_enable_mixed_precision_graph_rewrite_with(                                                                               \
      &(const mix_graph_rewrite_options){.size = sizeof(mix_graph_rewrite_options), .optimizer = __VA_ARGS__})
#endif
MIX_API mix_graph_rewrite_options mix_graph_rewrite_defaults(void);
/* Functions captured from now on stay as they are; wrapped optimizers keep scaling. Only a warning where the rewrite is not enabled. */
MIX_API mix_status mix_disable_mixed_precision_graph_rewrite(void);

/* The option alone, without an optimizer: rewrite to "float16" or "bfloat16" (which needs no loss scaling), or NULL: not at all. Any other name
 * is a ValueError. It does not count as enabled: policies may be set beside it. */
MIX_API mix_status mix_set_graph_rewrite(const char *dtype);
/* What captured functions are rewritten to now; MIX_DTYPE_NONE: not at all. */
MIX_API mix_dtype mix_graph_rewrite_dtype(void);

#ifdef __cplusplus
}
#endif
#endif
