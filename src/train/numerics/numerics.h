/* Internals of the numerics report: its rows, and what each capture of the step returns. */
#pragma once

#include "train/captured_steps.h"
#include <mixtape/numerics.h>

/* Accumulated vectors of ops/magnitudes.h. */
typedef struct mix_numerics_sum {
  mix_numerics_statistics statistics;
  int64_t *bins; /* one per exponent of the dtype */
} mix_numerics_sum;

typedef struct mix_numerics_entry {
  const char *layer, *tensor, *op; /* interned */
  const char *blamed;              /* interned: the layer whose backward operation computes the gradient */
  mix_numerics_kind kind;
  mix_dtype dtype;
  mix_shape shape;
  bool has_gradient, scaled_loss;
  bool first_forward, first_gradient; /* the first non-finite value of a failed step was here */
  bool harmless; /* non-finite in the forward pass of a successful step: minus infinity before a softmax */
  double first_largest, latest_largest; /* largest forward value in the first and the latest step */
  mix_numerics_sum forward, gradient;
  mix_numerics_sum applied; /* the gradient, over applied steps only */
} mix_numerics_entry;

/* The results of one capture of the step: for each entry a vector of the forward value and, if any, of the
 * gradient. Captures for other batch shapes share the entries. */
typedef struct mix_numerics_layout {
  int count;
  struct mix_numerics_slot {
    int entry;
    bool gradient;
  } * slots;
} mix_numerics_layout;

typedef struct mix_numerics_incident {
  int64_t step;
  bool applied, forward, nan;
  int entry; /* -1: the step was not watched, or all watched values are finite */
  double loss_scale;
} mix_numerics_incident;

/* A step of the curves; of long runs one of `stride` steps. The scale is that of the latest watched step. */
typedef struct mix_numerics_point {
  double loss, scale;
  bool applied; /* this step and those up to the next point */
} mix_numerics_point;

enum { MIX_NUMERICS_ADVICE_MAX = 4, MIX_NUMERICS_TEXT = 640 };
typedef struct mix_numerics_conclusion {
  const char *status, *layer; /* status: constant; layer: interned or NULL */
  char text[MIX_NUMERICS_TEXT];
  int advice_count;
  struct mix_numerics_advice_item {
    const char *kind, *layer;
    double loss_scale;
    char text[MIX_NUMERICS_TEXT];
  } advice[MIX_NUMERICS_ADVICE_MAX];
} mix_numerics_conclusion;

struct mix_numerics {
  mix_object object;
  int64_t every, stall_limit;
  bool intermediates;
  mix_optimizer *optimizer;   /* of the running fit: borrowed */
  const char *model, *policy; /* interned */
  bool takes_maps;            /* policies by layer */
  mix_dtype rewrite;          /* the dtype of the graph rewrite, or MIX_DTYPE_NONE */
  bool scaled, dynamic, stalled;
  int64_t batch_size; /* rows of the first batch */
  int64_t steps, watched, skipped, skipped_in_row;
  double loss;                          /* of the latest step */
  double first_scale, scale, min_scale; /* of the first and the latest watched step, and the minimum */
  double applied_scale;                 /* of the latest applied step; 0: none */
  mix_numerics_entry *entries;
  int entry_count, entry_capacity;
  mix_numerics_layout *layouts;
  int layout_count, layout_capacity;
  mix_numerics_incident *incidents;
  int incident_count, incident_capacity;
  mix_numerics_point *points;
  int point_count, point_capacity;
  int64_t stride;
  struct mix_numerics_watch *watch;               /* exists while a step is captured */
  void (*end_watch)(struct mix_numerics *report); /* releases `watch` */
  mix_numerics_conclusion conclusion;             /* conclusion of the steps so far */
  int64_t concluded;                              /* `steps` at the time of the conclusion; -1: none */
  char *table, *json;
};
extern const mix_class mix_numerics_class;

/* numerics.c */
bool mix_numerics_given(const mix_numerics *report, const char *call);
/* Resets the report. */
void mix_numerics_clear(mix_numerics *report);
bool mix_numerics_finite(const mix_numerics_statistics *statistics);
/* The incidents of consecutive steps around `index` that differ in step and loss scale alone. */
void mix_numerics_run_of_incidents(const mix_numerics *report, int index, int *first, int *last);

/* watch.c: the observer of a fit, with the report as context. */
mix_step_observer mix_numerics_observer(mix_numerics *report);

/* collect.c */
/* The entry equal to `like` in layer, tensor and dtype, added if missing; -1: out of memory. */
int mix_numerics_entry_of(mix_numerics *report, const mix_numerics_entry *like);
/* Records the results of a step. */
mix_status mix_numerics_after(void *report, mix_list *results, bool watched, int own);

/* conclusion.c: the conclusion of the steps so far. */
const mix_numerics_conclusion *mix_numerics_conclude(const mix_numerics *report);

/* picture.c: the panels of both passes and the legend, as an element of HTML. */
void mix_numerics_put_picture(const mix_numerics *report, mix_text *page);

/* table.c. In pictures: does it have a strip in the panel of the forward pass, or of the gradients? */
bool mix_numerics_drawn(const mix_numerics_entry *entry, bool gradient);
const char *mix_numerics_kind_name(mix_numerics_kind kind);
