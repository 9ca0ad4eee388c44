/* Where the steps of fit, evaluate and predict get their batches: arrays or a data set. */
#ifndef MIX_MODEL_FEED_H
#define MIX_MODEL_FEED_H

#include "data/batches.h"
#include "data/state.h"
#include "model/model.h"
#include <mixtape/dataset.h>

typedef enum mix_feed_use { MIX_FEED_TRAIN, MIX_FEED_TEST, MIX_FEED_PREDICT } mix_feed_use;

typedef struct mix_feed {
  mix_model *model;
  const char *call; /* for messages */
  mix_feed_use use;
  mix_batches *batches;   /* of arrays, borrowed from the scope around; NULL: */
  mix_dataset *dataset;   /* borrowed */
  mix_iterator *iterator; /* retained */
  int weight_arguments;   /* of arrays */
  int64_t steps;          /* wanted of an epoch; 0: to the end */
  int64_t target;         /* steps of an epoch; -1: not known yet */
  int64_t position;       /* batches given in this epoch */
  bool going_on;          /* the next epoch goes on in the data where this one ends */
  /* Arrays: where in which pass over them the next batch is. A pass is an epoch, unless epochs go on. */
  int64_t pass, next, passes; /* passes: how many there are where epochs go on; -1: as many as are asked for */
  bool begun, resumed;
  mix_batch_order order;
  uint64_t seed;
} mix_feed;

typedef struct mix_feed_data {
  void *x, *y, *sample_weight; /* as the user gave them */
  int64_t batch_size;          /* 0: 32, or what `steps` asks for */
  int64_t steps;               /* of an epoch; 0: to the end */
} mix_feed_data;

/* Arrays as one list in the order of a step's arguments: inputs, labels, weights. */
mix_list *mix_feed_arrays(mix_model *model, const mix_feed_data *data, mix_feed_use use, const char *call, int *weight_arguments);
/* The feed over the first `rows` of those arrays (-1: all), for `epochs` of training. */
bool mix_feed_open_arrays(mix_feed *feed, mix_list *arrays, int64_t rows, int64_t batch_size, int64_t epochs);
/* Everything in one: arrays or a data set. The caller closes it, whatever this gives. */
bool mix_feed_open(mix_feed *feed, mix_model *model, const mix_feed_data *data, mix_feed_use use, const char *call);
void mix_feed_close(mix_feed *feed);
bool mix_feed_begin(mix_feed *feed, mix_batch_order order, uint64_t seed, uint64_t epoch);
/* The next batch: a list of finished tensors, for the time until the next call; NULL at the end, or with the error recorded. */
mix_list *mix_feed_next(mix_feed *feed);

/* The place in the data as values of a checkpoint: within the epoch at hand, or (`over`) before the next one. */
bool mix_feed_put_place(const mix_feed *feed, mix_state *state, bool over);
/* Brings a data set's place back, before any epoch begins. */
bool mix_feed_get_place(mix_feed *feed, mix_state *state);
/* In place of mix_feed_begin: the epoch goes on behind its first `position` batches. */
bool mix_feed_resume(mix_feed *feed, mix_batch_order order, uint64_t seed, uint64_t epoch, int64_t position);

#endif
