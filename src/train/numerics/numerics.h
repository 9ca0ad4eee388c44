/* Inside the numerics report: rows, what each capture of the step returns, and the files that make a report of it. */
#ifndef MIX_TRAIN_NUMERICS_NUMERICS_H
#define MIX_TRAIN_NUMERICS_NUMERICS_H

#include "model/model.h"
#include <mixtape/numerics.h>

/* Sums of the vectors of ops/magnitudes.h. */
typedef struct mix_numerics_sum {
  mix_numerics_statistics statistics;
  int64_t *bins; /* as many as the dtype has exponents */
} mix_numerics_sum;

typedef struct mix_numerics_entry {
  const char *layer, *tensor, *op; /* interned */
  const char *blamed;              /* interned: the layer whose backward operation makes the gradient */
  mix_numerics_kind kind;
  mix_dtype dtype;
  mix_shape shape;
  bool has_gradient, scaled_loss;
  bool first_forward, first_gradient; /* a step went wrong here first */
  bool harmless;                    /* was not finite in the forward pass of a step that went well: minus infinity behind a softmax */
  double first_largest, latest_largest; /* of the forward value in the first and the latest step */
  mix_numerics_sum forward, gradient;
  mix_numerics_sum applied;         /* the gradient, of steps that were applied alone */
} mix_numerics_entry;

/* What one capture of the step returns: for each entry a vector of the forward value and, where it has one, of the gradient. Captures
 * for other shapes of the batch share the entries. */
typedef struct mix_numerics_layout {
  int count;
  struct mix_numerics_place {
    int entry;
    bool gradient;
  } * places;
} mix_numerics_layout;

typedef struct mix_numerics_incident {
  int64_t step;
  bool applied, forward, nan;
  int entry; /* -1: the step was not watched, or all that was watched is finite */
  double loss_scale;
} mix_numerics_incident;

enum { MIX_NUMERICS_ADVICE_MAX = 4, MIX_NUMERICS_TEXT = 640 };
typedef struct mix_numerics_conclusion {
  const char *status, *layer; /* constant; interned or NULL */
  char text[MIX_NUMERICS_TEXT];
  int advice_count;
  struct mix_numerics_counsel {
    const char *kind, *layer;
    double loss_scale;
    char text[MIX_NUMERICS_TEXT];
  } advice[MIX_NUMERICS_ADVICE_MAX];
} mix_numerics_conclusion;

struct mix_numerics {
  mix_object object;
  int64_t every, stall_limit;
  bool intermediates;
  mix_optimizer *optimizer;   /* of the fit that runs: borrowed */
  const char *model, *policy; /* interned */
  mix_dtype rewrite; /* what captured functions are rewritten to; MIX_DTYPE_NONE */
  bool scaled, dynamic, stalled;
  int64_t batch_size;         /* rows of the first batch */
  int64_t steps, watched, skipped, skipped_in_row;
  double first_scale, scale, min_scale; /* of the first and the latest step that was watched, and the least */
  double applied_scale;                   /* of the latest step that was applied; 0: none was */
  mix_numerics_entry *entries;
  int entry_count, entry_capacity;
  mix_numerics_layout *layouts;
  int layout_count, layout_capacity;
  mix_numerics_incident *incidents;
  int incident_count, incident_capacity;
  struct mix_numerics_watch *watch; /* while a step is captured */
  void (*end_watch)(struct mix_numerics *report); /* releases it */
  mix_numerics_conclusion conclusion; /* of the steps so far */
  int64_t concluded;                  /* after so many steps; -1: not yet */
  char *table, *json;
};
extern const mix_class mix_numerics_class;

/* numerics.c */
bool mix_numerics_given(const mix_numerics *report, const char *call);
/* Forgets all steps. */
void mix_numerics_clear(mix_numerics *report);
bool mix_numerics_finite(const mix_numerics_statistics *statistics);

/* watch.c: the observer of a fit, with the report as context. */
mix_step_observer mix_numerics_observer(mix_numerics *report);

/* collect.c */
/* The entry of that name, made if there is none; -1: no memory. */
int mix_numerics_entry_of(mix_numerics *report, const mix_numerics_entry *like);
/* Takes the results of a step. */
mix_status mix_numerics_after(void *report, mix_list *results, bool watched, int own);

/* verdict.c: what the steps so far say. */
const mix_numerics_conclusion *mix_numerics_conclude(const mix_numerics *report);

/* table.c: an intermediate value is shown only where a step went wrong in it first. */
bool mix_numerics_shown(const mix_numerics_entry *entry);
const char *mix_numerics_kind_name(mix_numerics_kind kind);

#endif
