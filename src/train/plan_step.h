/* The training step before it runs. */
#pragma once

#include <mixtape/function.h>
#include <mixtape/model.h>

/* Compiles the step that train_on_batch and fit run on such a batch, and reports on it; fit then finds it. No
 * variable changes, but the optimizer is built. False with the error recorded. */
bool mix_model_plan_training(mix_model *model, const mix_on_batch_options *batch, mix_plan_report *report);
