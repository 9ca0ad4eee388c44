/* Shared by the tests of precision tuning: a model that needs two layers in float32, by arithmetic. */
#ifndef MIX_TESTS_TRAIN_TUNE_SUPPORT_H
#define MIX_TESTS_TRAIN_TUNE_SUPPORT_H

#include "model/support.h"
#include <mixtape/tuning.h>

/* "up" multiplies numbers between -1 and 1 by 2^20. In float16 all but those below 2^-4 overflow there, or in
 * the cast of the input of "down", which undoes it: both must be float32, and one alone is of no use. What
 * comes before and after them is of ordinary size. dtypes: of up and down. */
static inline mix_model *model_with_a_pair(const char *up, const char *down) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4), .name = "inputs");
  mix_tensor *x = mix_call(mix_dense(.units = 16, .activation = "tanh", .name = "before"), inputs);
  x = mix_call(mix_rescaling(.scale = 0x1p20, .dtype = up, .name = "up"), x);
  x = mix_call(mix_rescaling(.scale = 0x1p-20, .dtype = down, .name = "down"), x);
  x = mix_call(mix_dense(.units = 16, .activation = "tanh", .name = "after"), x);
  x = mix_call(mix_dense(.units = 1, .name = "last"), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
  assert_no_error();
  return model;
}

/* Rows of four numbers from -1 to 1, and the sum of their first two times the third. */
static inline void pair_data(int64_t rows, double shift, mix_tensor **x, mix_tensor **y) {
  mix_tensor *index = mix_range(0, (double)(4 * rows), 1, F32);
  mix_tensor *angles = mix_multiply(mix_add(index, mix_scalar(shift, F32)), mix_scalar(2.399963, F32));
  *x = mix_reshape(mix_sin(angles), MIX_SHAPE(rows, 4));
  mix_tensor *columns[4];
  for (int c = 0; c < 4; c++) columns[c] = mix_slice(*x, MIX_SHAPE(0, c), MIX_SHAPE(rows, 1));
  *y = mix_multiply(mix_add(columns[0], columns[1]), columns[2]);
  assert_int_equal(mix_evaluate(2, (mix_tensor *[]){*x, *y}), MIX_OK);
}

#endif
