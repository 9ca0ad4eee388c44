/* Inside a decode state, and the choice of tokens by their logits. */
#pragma once

#include "model/model.h"
#include "nn/layer/decoding.h"
#include <mixtape/generate.h>

/* Of a state that is one. The model is borrowed. */
mix_model *mix_decode_model(const mix_decode_state *state);
int64_t mix_decode_batch(const mix_decode_state *state);
int64_t mix_decode_window(const mix_decode_state *state);
int64_t mix_decode_vocabulary(const mix_decode_state *state);

/* choose_token.c: how one is chosen. */
typedef struct mix_token_choice {
  bool draws; /* else the largest logit, the first of several */
  double temperature, top_p;
  int64_t top_k; /* 0: all */
  uint64_t seed;
} mix_token_choice;
/* One of `count` tokens; position and sequence count the draws. `order` has room for `count` numbers. No
 * logit is NaN, and one is above -infinity. */
int64_t mix_choose_token(const mix_token_choice *choice, const float *logits, int64_t count,
                         uint64_t position, uint64_t sequence, int32_t *order);
/* What is subtracted from logits to make them log-probabilities. */
double mix_log_total(const float *logits, int64_t count);
