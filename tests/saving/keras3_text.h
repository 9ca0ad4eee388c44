/* Pieces of Keras 3's JSON of functional models. */
#ifndef MIX_TESTS_SAVING_KERAS3_TEXT_H
#define MIX_TESTS_SAVING_KERAS3_TEXT_H

/* The tensor of an input layer in a call, and that layer. */
#define TENSOR(name, shape, dtype)                                                                           \
  "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": " shape ", \"dtype\": \"" dtype            \
  "\", \"keras_history\": [\"" name "\", 0, 0]}}"
#define INPUT(name, shape, dtype)                                                                            \
  "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": " shape      \
  ", \"dtype\": \"" dtype "\", \"sparse\": false, \"ragged\": false, \"name\": \"" name                      \
  "\"}, \"registered_name\": null, \"name\": \"" name "\", \"inbound_nodes\": []}"
#define AND_INPUT(name, shape, dtype) ", " INPUT(name, shape, dtype)

#endif
