/* The training step of a loop of one's own: tape, scaled loss, update. It takes any optimizer: one that
 * scales no loss leaves it as it is. `mixtape train --loop custom` runs this step too. */
#ifndef TRAINING_STEP_H
#define TRAINING_STEP_H

#include <mixtape/mixtape.h>

typedef struct training {
  mix_model *model;
  mix_loss *loss_object;
  mix_optimizer *optimizer;
} training;

/* Returns the loss and the predictions. */
static mix_list *train_step(void *context, mix_list *batch) {
  training *t = context;
  mix_list *variables = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(batch, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss_object, mix_list_get(batch, 1), predictions);
  mix_tensor *scaled_loss = mix_optimizer_scale_loss(t->optimizer, loss);
  mix_tape_end(tape);
  mix_list *scaled_gradients = mix_tape_gradient(tape, scaled_loss, variables);
  mix_optimizer_apply(t->optimizer, scaled_gradients, variables); /* unscales them */
  return mix_list_of(loss, predictions);
}

#endif
