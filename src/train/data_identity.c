/* What of a fit's data makes a run another one: class weights, and the data set or arrays. */
#include "train/fit_state.h"

#include "base/json.h"
#include "distribute/distribute.h"
#include "saving/run_identity.h"

/* NULL with the error recorded. */
static json_t *describe_data(const mix_fit_state *f) {
  json_t *data = json_object();
  /* Ranks that have data of their own share neither a run's identity nor a checkpoint's of them. */
  const bool good =
      mix_run_identity_set(data, "class weights", mix_class_weights_json(&f->options)) &&
      (f->options.rows == MIX_LOCAL && mix_is_distributed() ? true
       : f->adapter.dataset ? mix_run_identity_dataset(data, "data set", f->adapter.dataset)
                            : mix_run_identity_arrays(data, "data", mix_batches_arrays(f->adapter.batches)));
  if (good) return data;
  json_decref(data);
  return NULL;
}

bool mix_fit_identify_data(mix_fit_state *f, json_t *identity) {
  if (!f->data_identity) f->data_identity = describe_data(f);
  return f->data_identity && mix_json_update(identity, f->data_identity);
}
