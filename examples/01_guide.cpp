// 01_guide.c in C++20: the model of the Keras mixed precision guide, trained with fit and evaluated.
//
//   01_guide_cplusplus [mnist|digits [UNITS [BATCH_SIZE [EPOCHS]]]]
#include <mixtape.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

int main(int argc, char **argv) try {
  const std::string name = argc > 1 ? argv[1] : "mnist";
  const int units = argc > 2 ? std::atoi(argv[2]) : 64, batch = argc > 3 ? std::atoi(argv[3]) : 8192,
            epochs = argc > 4 ? std::atoi(argv[4]) : 5;
  mix_set_log_callback(mix_log_to_stderr, nullptr);
  mix::scope scope;
  mix_set_global_policy("mixed_float16");
  std::cout << "Compute dtype: " << mix_dtype_name(mix_policy_compute_dtype(mix_global_policy())) << "\n";
  std::cout << "Variable dtype: " << mix_dtype_name(mix_policy_variable_dtype(mix_global_policy())) << "\n";

  mix_tensor *inputs = mix::input({.shape = mix::shape(784), .name = "digits"});
  mix_tensor *x = mix::dense({.name = "dense_1", .units = units, .activation = "relu"})(inputs);
  x = mix::dense({.name = "dense_2", .units = units, .activation = "relu"})(x);
  x = mix::dense({.name = "dense_logits", .units = 10})(x);
  // The softmax is computed in float32: its sum of exponentials is inaccurate in float16.
  x = mix::activation({.name = "predictions", .dtype = "float32", .activation = "softmax"})(x);
  auto model = mix::model({.inputs = inputs, .outputs = x});
  std::cout << "Outputs dtype: " << mix_dtype_name(mix_tensor_dtype(x)) << "\n";

  model.compile(
      {.loss = "sparse_categorical_crossentropy", .optimizer = mix::rmsprop(), .metrics = {"accuracy"}});
  const mix_images data = name == "digits" ? mix::digits_load() : mix::mnist_load();
  std::cout << "Data: " << data.source << "\n";
  model.fit(data.x_train, data.y_train, {.batch_size = batch, .epochs = epochs, .validation_split = 0.2});
  mix_logs *scores = model.evaluate(data.x_test, data.y_test, {.verbose = 2});
  std::cout << "Test loss: " << mix_logs_get(scores, "loss") << "\n";
  std::cout << "Test accuracy: " << mix_logs_get(scores, "accuracy") << "\n";
  // Under mixed_float16 compile wraps the optimizer in dynamic loss scaling.
  std::cout << "Loss scale: " << mix_tensor_item(mix_optimizer_loss_scale(mix_model_optimizer(model)))
            << "\n";
} catch (const mix::error &e) {
  std::cerr << e.name() << ": " << e.what() << "\n";
  return 1;
}
