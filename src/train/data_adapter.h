/* Data adapter: gives the steps of fit, evaluate and predict their batches, from arrays or a data set. */
#pragma once

#include "data/pipeline/array_batches.h"
#include "formats/archive.h"
#include "train/captured_steps.h"
#include "train/resident.h"
#include <mixtape/dataset.h>

typedef enum mix_data_adapter_use {
  MIX_ADAPTER_TRAIN,
  MIX_ADAPTER_TEST,
  MIX_ADAPTER_PREDICT
} mix_data_adapter_use;

typedef struct mix_data_adapter {
  mix_model *model;
  const char *call; /* for messages */
  mix_data_adapter_use use;
  mix_batches *batches;         /* batches of arrays, borrowed from the enclosing scope; NULL: a data set */
  mix_resident *resident;       /* their arrays on the device; NULL: on the host */
  mix_kept_arrays *kept;        /* where it is kept for the passes that follow; NULL: it is owned */
  mix_dataset *dataset;         /* borrowed */
  mix_iterator *iterator;       /* retained */
  mix_step_arguments arguments; /* of arrays, or of the current element */
  /* How nested elements give the arguments: places among their leaves, for their structure. */
  const mix_structure *arranged;
  struct mix_arrangement {
    int places[3 * MIX_MODEL_MAX]; /* -1: none */
    int count, inputs, outputs;
  } arrangement;
  int64_t steps;        /* requested per epoch; 0: to the end of the data */
  int64_t target;       /* steps per epoch; -1: not known yet */
  int64_t position;     /* batches returned in this epoch */
  double began, waited; /* when the epoch began; seconds of it that went into its batches */
  bool continues;       /* the next epoch continues in the data where this one ends */
  /* Arrays: the current pass over them, and its next batch. A pass is an epoch, unless epochs continue. */
  int64_t pass, next, passes; /* passes: their number if epochs continue; -1: unlimited */
  bool begun, resumed;
  bool rounds,
      asked;      /* batches have rounded arguments; whether they might has been asked (rounded_input.c) */
  bool validates; /* the data are the validation data of a fit */
  mix_batch_order order;
  uint64_t seed;
  /* Several ranks. */
  mix_rank_rows rows;
  uint32_t digest;   /* of the arrays, or of the current element */
  mix_list *no_rows; /* an element without rows: retained, once there was one */
  bool waits;        /* this rank has no more elements, but others have */
} mix_data_adapter;

typedef struct mix_data_adapter_data {
  void *x, *y, *sample_weight; /* as given by the user */
  int64_t batch_size;          /* 0: 32, or derived from `steps` */
  int64_t steps;               /* per epoch; 0: to the end of the data */
  mix_rank_rows rows;
  bool may_be_empty;     /* arrays may have no rows */
  mix_kept_arrays *kept; /* arrays that may stay on the device for later passes; NULL: they do not */
} mix_data_adapter_data;

/* The arrays as one list in the order of a step's arguments: inputs, labels, weights. A label that is not
 * given is one of the inputs, and a weight that is not given is ones. */
mix_list *mix_data_adapter_arrays(mix_model *model, const mix_data_adapter_data *data,
                                  mix_data_adapter_use use, const char *call, mix_step_arguments *arguments);
/* Are these arrays, or nested arrays? Else a TypeError. */
bool mix_data_given(void *given, const char *call, const char *what);
/* arrays.c: prepares arrays as lists of (rows, ...) tensors of equal length, not 0 unless they may be empty.
 * Floating arrays are cast to floatx. */
mix_list *mix_model_arrays(mix_list *given, bool may_be_empty, const char *call);
/* arrange.c: the places of a step's arguments among the leaves of x, labels and weights. `y` and `weights`
 * NULL: not given. */
bool mix_arrange(const mix_model *model, mix_list *leaves, const mix_component *x, const mix_component *y,
                 const mix_component *weights, const char *call, struct mix_arrangement *arrangement,
                 mix_step_arguments *arguments);
/* The arguments at their places. */
mix_list *mix_arranged(const struct mix_arrangement *arrangement, mix_list *leaves);
/* Opens the adapter over the first `rows` of those arrays (-1: all), for `epochs` epochs of training. */
bool mix_data_adapter_open_arrays(mix_data_adapter *adapter, mix_list *arrays, int64_t rows,
                                  int64_t batch_size, int64_t epochs);
/* False with a RuntimeError: a function is being captured. */
bool mix_data_adapter_may_read(const char *call);
/* What the number of batches of arrays decides. */
static inline void mix_data_adapter_set_target(mix_data_adapter *adapter) {
  const int64_t batches = mix_batches_count(adapter->batches);
  adapter->target = adapter->steps ? adapter->steps : batches;
  adapter->continues = adapter->use == MIX_ADAPTER_TRAIN && adapter->steps && adapter->steps != batches;
}
/* Both steps, for arrays or a data set. The caller must close the adapter, also on failure. */
bool mix_data_adapter_open(mix_data_adapter *adapter, mix_model *model, const mix_data_adapter_data *data,
                           mix_data_adapter_use use, const char *call);
void mix_data_adapter_close(mix_data_adapter *adapter);
bool mix_data_adapter_begin(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch);
/* The next batch: a list of evaluated tensors, valid until the next call; NULL at the end, or with the error
 * recorded. */
mix_list *mix_data_adapter_next(mix_data_adapter *adapter);

/* rounded_input.c: calls the step with the batch. Arguments that its plan does nothing with but cast them to
 * 16 bits are rounded where the next batches are gathered; `*batch` may become one that is not. */
mix_list *mix_data_adapter_run(mix_data_adapter *adapter, mix_function *step, mix_list **batch);
/* The share of the epoch until now for which its steps waited for batches. 0 if that is not worth telling:
 * less than a tenth, or less than a second. */
double mix_data_adapter_waited_share(const mix_data_adapter *adapter);
/* label_error.c: after a step failed with this batch, says in the error which row of the data has the label
 * that was refused, or that class weights lack. Another error stays. */
void mix_data_adapter_explain(const mix_data_adapter *adapter, mix_list *batch);
/* rank_data.c: what several ranks make of their data. Are they whose rows `rows` says? */
bool mix_rank_rows_check(mix_rank_rows rows, const char *call);
/* What ranks compare within a step: with MIX_SHARED dtypes, shapes and perhaps a sample of the values. */
uint32_t mix_rank_data_digest(mix_list *arrays, mix_rank_rows rows, bool values);
/* This rank's share of the rows of every tensor, or with MIX_LOCAL all of them. */
mix_list *mix_rank_data_share(mix_list *arrays, mix_rank_rows rows);
/* Every rank calls it after it has opened its adapter, or has failed to. A ValueError on all of them if
 * options differ on which the number of steps depends. Those of MIX_LOCAL arrays then have as many batches as
 * the longest. */
bool mix_data_adapter_meet(mix_data_adapter *adapter, bool opened);
/* In each step of MIX_LOCAL data sets: the own element, one without rows if only others have one, or NULL. */
mix_list *mix_data_adapter_element_of_ranks(mix_data_adapter *adapter, mix_list *own);

/* Writes the position in the data as values of a checkpoint: within the current epoch, or (`at_epoch_end`)
 * before the next one. */
bool mix_data_adapter_put_position(const mix_data_adapter *adapter, mix_archive *archive, bool at_epoch_end);
/* Restores a saved position, before any epoch begins. */
bool mix_data_adapter_get_position(mix_data_adapter *adapter, mix_archive *archive);
/* In place of mix_data_adapter_begin: continues the epoch after its first `position` batches. */
bool mix_data_adapter_resume(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch,
                             int64_t position);
