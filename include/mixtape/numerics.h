/* The numerics report: what happens to the numbers of a model while it trains. For each layer's tensors the range of magnitudes, zeros,
 * subnormals, infinities and NaN, in the forward pass and in the gradient of the scaled loss; what overflowed first in each step that was
 * skipped; what would help. The steps are those of fit, watched: the weights become the same bits as without the report, but for
 * models compiled with jit_compile, whose excess precision depends on what is fused. */
#ifndef MIXTAPE_NUMERICS_H
#define MIXTAPE_NUMERICS_H

#include <mixtape/callback.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mix_numerics mix_numerics; /* an object: mix_retain, mix_release. What it returns as text or pointer is its own and lives
                                           * until it changes (a further step, the next call of the same function) or goes */

/* An empty report, which mix_numerics_report fills. */
MIX_API mix_numerics *mix_numerics_new(void);

typedef struct mix_numerics_report_options {
  size_t size;
  mix_numerics *report;         /* is emptied at the start of training; NULL: one of its own, for the files below */
  int64_t every;                /* look at every nth step (0: 1); after a skipped step, at each until one is applied. A step that is looked
                                 * at takes longer: all intermediate values are kept and counted */
  int64_t stall;                /* the loss scale has stalled after that many skipped steps in a row (0: 20), or after two at its floor */
  bool stop_at_stall;           /* ends training there */
  const char *json, *table, *png; /* files written at the end of training, and when the loss scale stalls; NULL: none */
  bool no_intermediates;        /* layers' outputs and weights alone, not the values between them */
} mix_numerics_report_options;
/* The callback: watches the steps of fit. When the loss scale stalls, and at the end of training where something was wrong, the verdict goes
 * to the log as a warning. One to a fit (RuntimeError). Files that cannot be written are an IOError before training begins. */
MIX_API mix_callback *mix_numerics_report_with(const mix_numerics_report_options *options);

typedef struct mix_numerics_run_options {
  size_t size;
  void *x, *y;                  /* as in fit */
  int64_t steps;                /* 0: 50; negative: ValueError */
  int64_t batch_size;           /* 0: 32 */
  bool no_shuffle;
  uint64_t seed;
  int64_t stall;                /* as above; the run ends there */
  bool no_intermediates;
} mix_numerics_run_options;
/* Trains a compiled model for some steps and reports. */
MIX_API mix_numerics *mix_numerics_run_with(mix_model *model, const mix_numerics_run_options *options);

#ifndef __cplusplus
/* mix_numerics_report(.report = report, .png = "numerics.png") */
#define mix_numerics_report(...)                                                                                               \
  mix_numerics_report_with(&(const mix_numerics_report_options){.size = sizeof(mix_numerics_report_options), __VA_ARGS__})
/* mix_numerics_run(model, x, y, .steps = 20) */
#define mix_numerics_run(model, run_x, ...)                                                                                    \
  mix_numerics_run_with(model, &(const mix_numerics_run_options){.size = sizeof(mix_numerics_run_options), .x = run_x, .y = __VA_ARGS__})
#endif

/* ---- reading it ---- */

/* Steps of training seen, those looked at, those that the loss scale skipped. */
MIX_API int64_t mix_numerics_steps(const mix_numerics *report);
MIX_API int64_t mix_numerics_watched(const mix_numerics *report);
MIX_API int64_t mix_numerics_skipped(const mix_numerics *report);

/* Counts over all steps looked at; the extremes are of nonzero finite magnitudes, 0 where there is none. */
typedef struct mix_numerics_statistics {
  int64_t elements, zeros;
  int64_t subnormals;           /* nonzero, below the least normal number of the tensor's own dtype */
  int64_t infinities, nans;
  double smallest, largest;
} mix_numerics_statistics;

typedef enum mix_numerics_kind {
  MIX_NUMERICS_DATA,            /* what a step is given: inputs, floating labels, sample weights */
  MIX_NUMERICS_WEIGHT,          /* as its layer reads it: in 16 bits under a mixed policy */
  MIX_NUMERICS_INPUT,           /* a layer's input after the cast to the layer's dtype, where there is a cast */
  MIX_NUMERICS_INTERMEDIATE,    /* between a layer's input and its output, or of the loss */
  MIX_NUMERICS_OUTPUT,          /* of a layer */
  MIX_NUMERICS_LOSS             /* the loss, and the loss times its scale */
} mix_numerics_kind;

typedef struct mix_numerics_row {
  size_t size;
  const char *layer, *tensor;   /* "dense_1", "kernel"; "dense_1", "output" */
  const char *op;               /* what computed it: "matmul", "cast" */
  mix_numerics_kind kind;
  mix_dtype dtype;
  mix_shape shape;              /* of the first batch */
  mix_numerics_statistics forward, gradient;
  bool has_gradient;            /* false: the scaled loss does not depend on it, or on no trainable weight through it */
} mix_numerics_row;
/* One row a tensor, in the order of the forward pass. */
MIX_API int mix_numerics_row_count(const mix_numerics *report);
/* Fills the first row_size bytes, sizeof(mix_numerics_row); an index outside is a ValueError. Events and advice likewise. */
MIX_API mix_status mix_numerics_get_row(const mix_numerics *report, int index, mix_numerics_row *row, size_t row_size);
/* Nonzero finite values of a row with magnitudes in [2^exponent, 2^(exponent + 1)); 0 outside the dtype's range. */
MIX_API int64_t mix_numerics_histogram(const mix_numerics *report, int row, bool gradient, int exponent);

/* A step that was skipped, or in which loss or gradients were not finite: the first 9,999 of them, and the latest. */
typedef struct mix_numerics_event {
  size_t size;
  int64_t step;                 /* from 1 */
  bool applied, forward;        /* forward: the forward pass was not finite; else a gradient */
  const char *layer;            /* whose operation made the first value that is not finite: in forward order, else in backward order; NULL:
                                 * the step was not looked at */
  const char *tensor;           /* where that value stands: its layer is `tensor_layer` */
  const char *tensor_layer, *op;
  bool nan;                     /* there was a NaN among the first values, not infinities alone */
  double loss_scale;            /* of this step; 1 without scaling */
} mix_numerics_event;
MIX_API int mix_numerics_event_count(const mix_numerics *report);
MIX_API mix_status mix_numerics_get_event(const mix_numerics *report, int index, mix_numerics_event *event, size_t event_size);

/* The verdict: "healthy", "settled" (steps were skipped until the loss scale fitted), "searching" (all steps so far were skipped, the scale is
 * falling still), "stalled", "overflow", "underflow", "bad data" or "no steps". */
MIX_API const char *mix_numerics_status(const mix_numerics *report);
/* The layer that the verdict names; NULL where it names none. */
MIX_API const char *mix_numerics_layer(const mix_numerics *report);
/* The verdict as a sentence or two. */
MIX_API const char *mix_numerics_verdict(const mix_numerics *report);

/* What would help, best first: kinds "float32_override", "bfloat16", "larger_scale", "smaller_scale", "loss_scaling", "learning_rate",
 * "clean_data", "check_operation". */
typedef struct mix_numerics_advice {
  size_t size;
  const char *kind, *layer;     /* layer NULL: it concerns the whole model */
  double loss_scale;            /* of larger_scale and smaller_scale: the one proposed; else 0 */
  const char *text;
} mix_numerics_advice;
MIX_API int mix_numerics_advice_count(const mix_numerics *report);
MIX_API mix_status mix_numerics_get_advice(const mix_numerics *report, int index, mix_numerics_advice *advice, size_t advice_size);

/* The report for people: verdict and advice, skipped steps, a row for each tensor. `all`: the values between too, which are shown
 * only where a step went wrong in them first otherwise. */
MIX_API const char *mix_numerics_table(mix_numerics *report, bool all);
/* All of it, histograms included, as one JSON object; numbers that are not finite as strings. */
MIX_API const char *mix_numerics_json(mix_numerics *report);
/* A picture: for each tensor a strip of its histogram over powers of two, above the range of its dtype. An IOError leaves what was there. */
MIX_API mix_status mix_numerics_write_png(mix_numerics *report, const char *path);

#ifdef __cplusplus
}
#endif
#endif
