/* Where the steps of fit, evaluate and predict get their batches: arrays or a data set. */
#ifndef MIX_TRAIN_DATA_ADAPTER_H
#define MIX_TRAIN_DATA_ADAPTER_H

#include "data/pipeline/array_batches.h"
#include "formats/archive.h"
#include "model/model.h"
#include <mixtape/dataset.h>

typedef enum mix_data_adapter_use { MIX_ADAPTER_TRAIN, MIX_ADAPTER_TEST, MIX_ADAPTER_PREDICT } mix_data_adapter_use;

typedef struct mix_data_adapter {
  mix_model *model;
  const char *call; /* for messages */
  mix_data_adapter_use use;
  mix_batches *batches;   /* of arrays, borrowed from the scope around; NULL: */
  mix_dataset *dataset;   /* borrowed */
  mix_iterator *iterator; /* retained */
  int weight_arguments;   /* of arrays */
  int64_t steps;          /* wanted of an epoch; 0: to the end */
  int64_t target;         /* steps of an epoch; -1: not known yet */
  int64_t position;       /* batches given in this epoch */
  bool continues;          /* the next epoch goes on in the data where this one ends */
  /* Arrays: where in which pass over them the next batch is. A pass is an epoch, unless epochs go on. */
  int64_t pass, next, passes; /* passes: how many there are where epochs go on; -1: as many as are asked for */
  bool begun, resumed;
  mix_batch_order order;
  uint64_t seed;
} mix_data_adapter;

typedef struct mix_data_adapter_data {
  void *x, *y, *sample_weight; /* as the user gave them */
  int64_t batch_size;          /* 0: 32, or what `steps` asks for */
  int64_t steps;               /* of an epoch; 0: to the end */
} mix_data_adapter_data;

/* Arrays as one list in the order of a step's arguments: inputs, labels, weights. */
mix_list *mix_data_adapter_arrays(mix_model *model, const mix_data_adapter_data *data, mix_data_adapter_use use, const char *call, int *weight_arguments);
/* The adapter over the first `rows` of those arrays (-1: all), for `epochs` of training. */
bool mix_data_adapter_open_arrays(mix_data_adapter *adapter, mix_list *arrays, int64_t rows, int64_t batch_size, int64_t epochs);
/* Everything in one: arrays or a data set. The caller closes it, whatever this gives. */
bool mix_data_adapter_open(mix_data_adapter *adapter, mix_model *model, const mix_data_adapter_data *data, mix_data_adapter_use use, const char *call);
void mix_data_adapter_close(mix_data_adapter *adapter);
bool mix_data_adapter_begin(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch);
/* The next batch: a list of finished tensors, for the time until the next call; NULL at the end, or with the error recorded. */
mix_list *mix_data_adapter_next(mix_data_adapter *adapter);

/* The place in the data as values of a checkpoint: within the epoch at hand, or (`over`) before the next one. */
bool mix_data_adapter_put_position(const mix_data_adapter *adapter, mix_archive *archive, bool over);
/* Brings a data set's place back, before any epoch begins. */
bool mix_data_adapter_get_position(mix_data_adapter *adapter, mix_archive *archive);
/* In place of mix_data_adapter_begin: the epoch goes on behind its first `position` batches. */
bool mix_data_adapter_resume(mix_data_adapter *adapter, mix_batch_order order, uint64_t seed, uint64_t epoch, int64_t position);

#endif
