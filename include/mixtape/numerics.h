/* The numerics report: the value ranges of a model's tensors during training. For each tensor of each
 * layer it counts magnitudes, zeros, subnormals, infinities and NaNs, in the forward pass and in the
 * gradient of the scaled loss. For each skipped step it finds the first overflow, and it gives advice. The
 * steps are those of fit: the weights get the same bits as without the report, except for models compiled
 * with jit_compile, whose excess precision depends on fusion. */
#ifndef MIXTAPE_NUMERICS_H
#define MIXTAPE_NUMERICS_H

#include <mixtape/callback.h>

MIX_BEGIN_DECLARATIONS

/* An object: mix_retain, mix_release. It owns the strings and pointers that it returns. They live until it
 * changes (a further step, the next call of the same function) or is released. */
typedef struct mix_numerics mix_numerics;

/* An empty report, which mix_numerics_report fills. */
MIX_API mix_numerics *mix_numerics_new(void);

typedef struct mix_numerics_report_options {
  size_t size;
  mix_numerics *report; /* cleared at the start of training; NULL: an internal one, for the files below */
  /* Watch every nth step (0: 1); after a skipped step, every step until one is applied. A watched step
   * takes longer, because all intermediate values are kept and counted. */
  int64_t every;
  /* The loss scale has stalled after this number of consecutive skipped steps (0: 20), or after two at its
   * minimum. */
  int64_t stall;
  bool stop_at_stall; /* ends training when the loss scale stalls */
  /* Files written at the end of training and at a stall; NULL: none. png needs the library cairo. */
  const char *json, *table, *png;
  bool no_intermediates; /* only outputs and weights of layers, not the values between */
  const char *html;      /* likewise a file: mix_numerics_write_html */
} mix_numerics_report_options;
/* The callback that watches the steps of fit. When the loss scale stalls, and at the end of training if
 * there was a problem, it logs the verdict as a warning. RuntimeError for more than one in a fit. IOError
 * before training if a file cannot be written. In several processes all ranks have it, and rank 0 writes. */
MIX_API mix_callback *mix_numerics_report_with(const mix_numerics_report_options *options);

typedef struct mix_numerics_run_options {
  size_t size;
  void *x, *y;        /* as in fit */
  int64_t steps;      /* 0: 50; negative: ValueError */
  int64_t batch_size; /* 0: 32 */
  bool no_shuffle;
  uint64_t seed;
  int64_t stall; /* as above; the run ends there */
  bool no_intermediates;
} mix_numerics_run_options;
/* Trains a compiled model for some steps and returns a report. Collective: all ranks give the same data. */
MIX_API mix_numerics *mix_numerics_run_with(mix_model *model, const mix_numerics_run_options *options);

#ifndef __cplusplus
/* mix_numerics_report(.report = report, .png = "numerics.png") */
#define mix_numerics_report(...)                                                                             \
  mix_numerics_report_with(MIX_ARGUMENTS("mix_numerics_report", "report", #__VA_ARGS__,                      \
                                         mix_numerics_report_options, __VA_ARGS__))
/* mix_numerics_run(model, x, y, .steps = 20) */
#define mix_numerics_run(model, run_x, ...)                                                                  \
  mix_numerics_run_with(model, MIX_ARGUMENTS("mix_numerics_run", "y", #__VA_ARGS__,                          \
                                             mix_numerics_run_options, .x = run_x, .y = __VA_ARGS__))
#endif

/* ---- reading a report ---- */

/* The numbers of training steps, of watched steps, and of steps that the loss scale skipped. */
MIX_API int64_t mix_numerics_steps(const mix_numerics *report);
MIX_API int64_t mix_numerics_watched(const mix_numerics *report);
MIX_API int64_t mix_numerics_skipped(const mix_numerics *report);

/* Counts over all watched steps. The extremes are those of nonzero finite magnitudes; 0 if there are none. */
typedef struct mix_numerics_statistics {
  int64_t elements, zeros;
  int64_t subnormals; /* nonzero, below the smallest normal number of the tensor's dtype */
  int64_t infinities, nans;
  double smallest, largest;
} mix_numerics_statistics;

typedef enum mix_numerics_kind {
  MIX_NUMERICS_DATA,         /* the arguments of a step: inputs, floating labels, sample weights */
  MIX_NUMERICS_WEIGHT,       /* as its layer reads it: in 16 bits under a mixed policy */
  MIX_NUMERICS_INPUT,        /* a layer's input after the cast to the layer's dtype, if there is a cast */
  MIX_NUMERICS_INTERMEDIATE, /* between a layer's input and its output, or of the loss */
  MIX_NUMERICS_OUTPUT,       /* of a layer */
  MIX_NUMERICS_LOSS          /* the loss, and the loss times its scale */
} mix_numerics_kind;

typedef struct mix_numerics_row {
  size_t size;
  const char *layer, *tensor; /* "dense_1", "kernel"; "dense_1", "output" */
  const char *op;             /* the op that computed it: "matmul", "cast" */
  mix_numerics_kind kind;
  mix_dtype dtype;
  mix_shape shape; /* of the first batch */
  mix_numerics_statistics forward, gradient;
  /* False: the scaled loss does not depend on it, or on no trainable weight through it. */
  bool has_gradient;
} mix_numerics_row;
/* The number of rows: one for each tensor, in the order of the forward pass. */
MIX_API int mix_numerics_row_count(const mix_numerics *report);
/* Fills the first row_size bytes of `row`; pass sizeof(mix_numerics_row). ValueError if the index is out
 * of range. Events and advice likewise. */
MIX_API mix_status mix_numerics_get_row(const mix_numerics *report, int index, mix_numerics_row *row,
                                        size_t row_size);
/* The number of nonzero finite values of a row with magnitudes in [2^exponent, 2^(exponent + 1)); 0
 * outside the range of the dtype. */
MIX_API int64_t mix_numerics_histogram(const mix_numerics *report, int row, bool gradient, int exponent);

/* A step that was skipped, or whose loss or gradients were not finite: the first 9,999 and the latest one. */
typedef struct mix_numerics_event {
  size_t size;
  int64_t step;          /* from 1 */
  bool applied, forward; /* forward: the forward pass was not finite; otherwise a gradient */
  /* The layer whose operation produced the first non-finite value, in forward order, or else in backward
   * order. NULL: the step was not watched. */
  const char *layer;
  const char *tensor; /* the tensor with that value; its layer is `tensor_layer` */
  const char *tensor_layer, *op;
  bool nan;          /* the first non-finite values include a NaN, not only infinities */
  double loss_scale; /* of this step; 1 without scaling */
} mix_numerics_event;
/* The number of events, and event `index`, in the order of the steps. */
MIX_API int mix_numerics_event_count(const mix_numerics *report);
MIX_API mix_status mix_numerics_get_event(const mix_numerics *report, int index, mix_numerics_event *event,
                                          size_t event_size);

/* The verdict: "healthy", "settled" (steps were skipped until the loss scale fitted), "searching" (all
 * steps so far were skipped, and the scale is still falling), "stalled", "overflow", "underflow", "bad
 * data" or "no steps". */
MIX_API const char *mix_numerics_status(const mix_numerics *report);
/* The layer that the verdict names; NULL if it names none. */
MIX_API const char *mix_numerics_layer(const mix_numerics *report);
/* The verdict in a few sentences. Also of a run in which nothing overflowed they name the largest forward
 * value of float16, if it is within a factor of 4 of overflow. */
MIX_API const char *mix_numerics_verdict(const mix_numerics *report);

/* Advice, best first. Kinds: "float32_override", "bfloat16", "larger_scale", "smaller_scale",
 * "loss_scaling", "learning_rate", "clean_data", "check_operation". */
typedef struct mix_numerics_advice {
  size_t size;
  const char *kind, *layer; /* layer NULL: the whole model */
  double loss_scale;        /* of larger_scale and smaller_scale: the proposed one; else 0 */
  const char *text;
} mix_numerics_advice;
/* The number of items of advice, and item `index`. */
MIX_API int mix_numerics_advice_count(const mix_numerics *report);
MIX_API mix_status mix_numerics_get_advice(const mix_numerics *report, int index, mix_numerics_advice *advice,
                                           size_t advice_size);

/* The report as text: verdict and advice, skipped steps, a row for each tensor. Values between layers are
 * included only if a step went wrong in them first, or if `all` is set. */
MIX_API const char *mix_numerics_table(mix_numerics *report, bool all);
/* The whole report, including histograms, as one JSON object. Numbers that are not finite are strings.
 * "simulated" has the counts of mix_simulated_get and their shares, or null if nothing is simulated. */
MIX_API const char *mix_numerics_json(mix_numerics *report);
/* Writes a picture: for each tensor its histogram over powers of two, above the range of its dtype. On an
 * IOError the old file is unchanged. Unsupported without the library cairo. */
MIX_API mix_status mix_numerics_write_png(mix_numerics *report, const char *path);
/* Writes the report as one page of HTML that needs no other file: verdict and advice, curves of loss and loss
 * scale with the skipped steps, and the strips of the picture. On an IOError the old file is unchanged. */
MIX_API mix_status mix_numerics_write_html(mix_numerics *report, const char *path);

MIX_END_DECLARATIONS
#endif
