/* What metadata.json says: which Keras reads the model, and when it was saved. */
#include "saving/model_json.h"

#include <time.h>

json_t *mix_metadata_json(const mix_semantics *rules) {
  char date[32] = "";
  struct tm fields;
  const time_t now = time(NULL);
  if (localtime_r(&now, &fields)) strftime(date, sizeof date, "%Y-%m-%d@%H:%M:%S", &fields);
  return mix_json_whole(json_pack("{s:s,s:s}", "keras_version", rules->keras_version, "date_saved", date));
}
