/* The captured steps of fit, evaluate and predict, and what their arguments say. */
#pragma once

#include "model/model.h"

/* Observer of the training steps of a fit. An observed step is a separate capture: the same step with
 * additional results. */
typedef struct mix_step_observer {
  void *context;
  bool (*wants)(void *context); /* will the next step be observed? */
  /* Hooks during capture; a NULL result means failure. `begin` runs before the model is called on `inputs`
   * (the remaining arguments are labels and weights). `sources` runs after the forward pass, with the nodes
   * that the tape recorded, the loss and the scaled loss, and lists the tensors whose gradients are wanted.
   * `results` gets these gradients and lists the additional results of the step. */
  void (*begin)(void *context, mix_list *inputs, mix_list *arguments);
  mix_list *(*sources)(void *context, mix_tape *tape, mix_tensor *loss, mix_tensor *scaled);
  mix_list *(*results)(void *context, mix_list *gradients);
  /* After each step, observed or not. `own` is the number of the step's own results, which come first. */
  mix_status (*after)(void *context, mix_list *results, bool watched, int own);
} mix_step_observer;

/* Arguments are the inputs, then the labels, then sample weights. Results of train are the loss, whether the
 * step was applied, then each metric's result for this batch alone; of test the loss; of a predictor the
 * outputs. */
mix_function *mix_model_train_step(mix_model *model);
mix_function *mix_model_test_step(mix_model *model);
mix_function *mix_predictor_step(mix_predictor *predictor, const mix_structure *input_names);
mix_status mix_model_reset_metrics(mix_model *model);
/* step_agreement.c: several processes tell each other within the next steps' messages what they were given.
 * Afterwards: were all given the same, and some of them rows? Else a ValueError, on every rank. */
bool mix_model_tell_ranks(mix_model *model, uint32_t digest, mix_list *batch);
bool mix_model_ranks_agree(mix_model *model, const char *call);
/* Within a step: the sum of `rows` over the ranks. */
mix_tensor *mix_model_rows_of_ranks(mix_compiled_state *state, mix_tensor *rows);
/* What else is to be known of the arguments of the next steps. The steps are captured again if it changes. */
typedef struct mix_step_arguments {
  int weights;
  unsigned missing_labels;
  const mix_structure *input_names;
} mix_step_arguments;
void mix_model_set_step_arguments(mix_model *model, const mix_step_arguments *arguments);
/* Sets the observer of the running fit until it ends (NULL: none). A RuntimeError if there is one already. */
mix_status mix_model_observe(mix_model *model, const mix_step_observer *observer);
/* The next step of a fit. *watched: it is the observed capture. */
mix_function *mix_model_fit_step(mix_model *model, bool *watched);

/* outputs_loss.c: the loss of all outputs together, reduced. NULL with the error recorded. */
mix_tensor *mix_model_loss_of_outputs(mix_model *model, mix_list *outputs, mix_list *arguments, int inputs,
                                      bool training);

/* class_weight.c: the class numbers of labels, int64, also of those that are one-hot or smoothed. */
mix_tensor *mix_class_labels(mix_tensor *y);
/* Are they so many, and numbers? */
bool mix_class_weights_check(int count, const double *weights, const char *call);
/* Sets the class weights of the next steps (count 0: none), which are captured again if they change. */
mix_status mix_model_set_class_weights(mix_model *model, int count, const int64_t *labels,
                                       const double *weights, const char *call);
/* The weights of a batch for one output, as a graph: the sample weights among the step's arguments,
 * multiplied in training by the class weights. NULL: none. */
mix_tensor *mix_model_weights_of_samples(mix_model *model, mix_list *arguments, int inputs, int output,
                                         bool training);
