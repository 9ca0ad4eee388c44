/* The options: names, commands, help, defaults. */
#include "backend/backend.h"
#include "cli/options.h"

const cli_option_row cli_option_rows[] = {
    {"model", MODEL, FIELD(model), RUNS | CLI_SUMMARY | CLI_BENCH,
     "guide|resnet50|resnet56|mobilenet_v2|transformer|FILE.keras|FILE.h5|FILE.onnx|FOLDER",
     "the model of the Keras guide (two hidden Dense layers and a float32 softmax); ResNet-50 v1.5 (stride "
     "in the 3x3 convolution, no biases there: 25,557,032 trainable parameters), ResNet-56 for CIFAR, "
     "MobileNetV2; the Transformer of the official models (encoder and decoder; 61,362,176 parameters); or a "
     "model that Keras saved, with its loss, optimizer, metrics, policies and generation, or of ONNX; or the "
     "folder of a model of KerasHub",
     "guide"},
    {"data", DATA, FIELD(data), RUNS, "mnist|digits|cifar10|synthetic|FILE.npz|FILE.csv",
     "MNIST, the built-in digits, CIFAR-10, random numbers of --seed in the shapes that the model takes, a "
     "table (--label), or arrays x, y, also with _train or _test behind; for a model from a file, as they "
     "are: x or x_0, x_1, ..., y or y_0, ..., or the names of its inputs and outputs, and sample_weight, "
     "each also with _train or _test behind (default mnist; for a model by name synthetic)"},
    {"label", TEXT, FIELD(label), RUNS, "COLUMN",
     "of --data FILE.csv: the column to learn; its words are classes in sorted order"},
    {"features", TEXT, FIELD(features), RUNS, "A,B,...",
     "of --data FILE.csv: the columns that the model takes (default: all but the label)"},
    {"words", TEXT, FIELD(words), RUNS, "A,B,...",
     "of --data FILE.csv: columns of words although they begin with a number, such as postal codes"},
    {"missing", TEXT, FIELD(missing), RUNS, "error|drop|mean|NUMBER",
     "of --data FILE.csv: of a missing value, leave its row out, or fill it (default error)"},
    {"unknown", CHOICE, FIELD(unknown), RUNS, "error|index",
     "of --data FILE.csv: a word that the model has not learned is an error (default) or the number after "
     "the last one"},
    {"columns", TEXT, FIELD(columns), RUNS, "FILE.json",
     "of --data FILE.csv: the columns that a model has learned from, their words and means (default: those "
     "that train --save FILE wrote to FILE.columns.json, if the model is FILE)"},
    {"delimiter", TEXT, FIELD(delimiter), RUNS, "CHARACTER|tab",
     "of --data FILE.csv: what stands between fields (default a comma)"},
    {"validation-data", TEXT, FIELD(validation_data), CLI_TRAIN, "FILE.csv",
     "beside --data FILE.csv: the table to validate on, read by the columns of the training data"},
    {"image-size", COUNT, FIELD(image_size), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "sides of the images of a model by name (default 224; resnet56 and with --data cifar10 32); else, with "
     "--data synthetic, where the model leaves them open (default 28 for the guide's model, else 16)"},
    {"classes", COUNT, FIELD(classes), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "classes of a model by name (default 1000; resnet56 and with --data cifar10 10), tokens of the "
     "Transformer (default 33708; 0 fills up sequences) and classes of the guide's model (default 10); of a "
     "model from a file, the labels of --data synthetic (default: all that it has)"},
    {"policy", CHOICE, FIELD(policy), CLI_TUNE, "float16|bfloat16|mixed_float16|mixed_bfloat16",
     "the policy to tune (default mixed_float16)", "mixed_float16", CHOSEN_BY_FILE},
    {"policy", CHOICE, FIELD(policy), (RUNS & ~CLI_TUNE) | CLI_SUMMARY | CLI_BENCH,
     "float32|float64|float16|bfloat16|mixed_float16|mixed_bfloat16",
     "default float32; for a model from a file: of the layers that it has in float32", "float32",
     CHOSEN_BY_FILE},
    {"dtype", CHOICE, FIELD(dtype), RUNS | CLI_SUMMARY | CLI_BENCH, "fp32|fp16|bf16",
     "short for --policy float32, mixed_float16 and mixed_bfloat16"},
    {"float32-layers", LAYERS, FIELD(float32_layers), (RUNS & ~CLI_TUNE) | CLI_SUMMARY, "A,B,...",
     "layers that compute in float32 although --policy computes in 16 bits; `mixtape tune-precision` finds "
     "them"},
    {"policy-map", TEXT, FIELD(policy_map), (RUNS & ~CLI_TUNE) | CLI_SUMMARY, "FILE.json",
     "a policy for each layer by its path, instead of --policy, also of layers that a file has in 16 bits; "
     "as Keras writes a DTypePolicyMap, or {\"default_policy\": \"float32\", \"policy_map\": {\"fc.*\": "
     "\"mixed_bfloat16\"}}"},
    {"lora-rank", COUNT, FIELD(lora_rank), CLI_TRAIN, "N",
     "LoRA: kernels stay as they are, and matrices a and b of this rank train in their place (Dense, "
     "EinsumDense, Embedding and Conv layers; the other layers train as ever)"},
    {"lora-alpha", NUMBER, FIELD(lora_alpha), CLI_TRAIN, "A",
     "with --lora-rank: a . b counts A / N times (default N)"},
    {"lora-layers", TEXT, FIELD(lora_layers), CLI_TRAIN, "REGEX",
     "with --lora-rank: only layers in whose path the expression is found"},
    {"load-lora", PATH, FIELD(load_lora), CLI_TRAIN | CLI_EVALUATE | CLI_PREDICT, "FILE",
     "begin with this adapter, which --save-lora wrote"},
    {"save-lora", PATH, FIELD(save_lora), CLI_TRAIN, "FILE.npz",
     "write the adapter after training: a, b and what else has trained, without the frozen kernels"},
    {"simulate", CHOICE, FIELD(simulate), CLI_TRAIN | CLI_NUMERICS | CLI_TUNE, "mxfp8|nvfp4|float8-current",
     "simulate this format of accelerators: operands of products in 16 bits are rounded to it and back; "
     "nothing becomes faster. tune-precision then finds the layers that must stay in 16 bits, and numerics "
     "says what is saturated and flushed"},
    {"stochastic-rounding", FLAG, FIELD(stochastic_rounding), CLI_TRAIN | CLI_NUMERICS | CLI_TUNE, NULL,
     "with --simulate: round gradients up or down at random"},
    {"simulate-except", LAYERS, FIELD(simulate_except), CLI_TRAIN | CLI_NUMERICS, "A,B,...",
     "with --simulate: layers that stay in 16 bits; `mixtape tune-precision --simulate` finds them"},
    {"units", COUNT, FIELD(units), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "units of the guide's hidden layers (default 4096 with a GPU, else 64), or of the Transformer's layers "
     "(default 512)"},
    {"layers", COUNT, FIELD(layers), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "layers of the Transformer's encoder, and of its decoder (default 6)"},
    {"heads", COUNT, FIELD(heads), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "heads of the Transformer's attention, which divide its units (default 8)"},
    {"filter-size", COUNT, FIELD(filter_size), RUNS | CLI_SUMMARY | CLI_BENCH, "N",
     "hidden units of the Transformer's feed-forward networks (default 4 times its units)"},
    {"length", COUNT, FIELD(length), RUNS | CLI_BENCH, "N",
     "tokens of a sequence of --data synthetic for the Transformer (default 32)"},
    {"batch-size", COUNT, FIELD(batch_size), RUNS | CLI_BENCH, "N",
     "examples per batch (default 32; with bench --advise 128)"},
    {"epochs", COUNT, FIELD(epochs), CLI_TRAIN | CLI_TUNE, "N", "passes over the training data (default 1)"},
    {"steps", COUNT, FIELD(steps), CLI_TRAIN | CLI_TUNE, "N",
     "stop training after N steps, regardless of --epochs"},
    {"steps", COUNT, FIELD(steps), CLI_NUMERICS, "N", "training steps (default 50)"},
    {"every", COUNT, FIELD(every), CLI_NUMERICS, "N",
     "watch every Nth step (default 1), and every step after a skipped one"},
    {"every", COUNT, FIELD(every), CLI_TUNE, "N",
     "the numerics report, which names suspects, watches every Nth step (default 25)"},
    {"stall", COUNT, FIELD(stall), CLI_NUMERICS, "N", "stop after N skipped steps in a row (default 20)"},
    {"validation-split", FRACTION, FIELD(validation_split), CLI_TRAIN | CLI_COMPILE, "F",
     "fraction at the end of the training data to validate on"},
    {"validation-split", FRACTION, FIELD(validation_split), CLI_TUNE, "F",
     "fraction at the end of the training data whose loss is compared (default: the test data, or 0.2 where "
     "there are none)"},
    {"no-shuffle", FLAG, FIELD(no_shuffle), TRAINS, NULL, "keep the order of the examples"},
    {"seed", SEED, FIELD(seed), RUNS & ~CLI_TUNE, "N",
     "seed of initial weights, shuffling and random layers (default 0)"},
    {"seed", FIRST_SEED, FIELD(seed), CLI_TUNE, "N", "the first seed; the others follow it (default 1)"},
    {"seeds", COUNT, FIELD(seeds), CLI_TUNE, "N",
     "float32 runs that give the mean loss and its deviation (default 3, at least 3)"},
    {"confirmations", COUNT, FIELD(confirmations), CLI_TUNE, "N",
     "new seeds on which the set that was found must hold (default 2)"},
    {"max-trials", COUNT, FIELD(max_trials), CLI_TUNE, "N",
     "most runs under --policy, confirmations included (default 100)"},
    {"retune", FLAG, FIELD(retune), CLI_TUNE, NULL,
     "of a file with layers in 16 bits, give --policy to its float32 layers too; without it they stay "
     "float32, and the others have the file's policy"},
    {"class-weight", CLASS_WEIGHTS, FIELD(class_weight), TRAINS, "0=3,7=0.25",
     "weights of the classes in the loss"},
    {"callback", CALLBACK, FIELD(callbacks), CLI_TRAIN, "NAME[:key=value,...]",
     "early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, tensorboard, "
     "backup_and_restore, terminate_on_nan or numerics_report; may be repeated"},
    {"callback", CALLBACK, FIELD(callbacks), CLI_TUNE, "NAME[:key=value,...]",
     "early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, tensorboard, "
     "backup_and_restore or terminate_on_nan; may be repeated"},
    {"tensorboard", TEXT, FIELD(tensorboard), CLI_TRAIN, "DIR",
     "write TensorBoard event files: loss, metrics, learning rate, loss scale, skipped steps, weights"},
    {"optimizer", TEXT, FIELD(optimizer), TRAINS, "NAME[:key=value,...]",
     "a Keras optimizer and its arguments, in lower case (default rmsprop)", "rmsprop", CHOSEN_BY_FILE},
    {"optimizer-state", CHOICE, FIELD(optimizer_state), TRAINS,
     "float32|bfloat16|bfloat16-stochastic|bfloat16-kahan",
     "how the optimizer's slots, and weights under --policy bfloat16, are kept (default float32: as Keras)"},
    {"loss", TEXT, FIELD(loss), TRAINS | CLI_EVALUATE, "NAME",
     "a Keras loss (default sparse_categorical_crossentropy)", "sparse_categorical_crossentropy",
     CHOSEN_BY_FILE},
    {"metrics", TEXT, FIELD(metrics), CLI_TRAIN | CLI_EVALUATE | CLI_COMPILE, "A,B[:key=value,...]",
     "Keras metrics: accuracy (default), top_k_categorical_accuracy, auc, mse, ...; arguments as in "
     "mean_io_u:num_classes=10,sparse_y_pred=false, lists as in thresholds=0.3:0.7",
     "accuracy", CHOSEN_BY_FILE},
    {"loss-scale", SCALE, FIELD(loss_scale), TRAINS, "auto|none|NUMBER|dynamic[:INITIAL[:GROWTH_STEPS]]",
     "loss scaling (default auto)"},
    {"semantics", CHOICE, FIELD(semantics), RUNS | CLI_SUMMARY, "tf_keras|keras3|experimental",
     "follow this generation of Keras (default tf_keras)", "tf_keras", CHOSEN_BY_FILE},
    {"accumulate", CHOICE, FIELD(accumulate), RUNS | CLI_SUMMARY | CLI_BENCH, "auto|exact|blocked",
     "how products of 16-bit numbers are summed"},
    {"float32-precision", CHOICE, FIELD(float32_precision), RUNS | CLI_BENCH, "highest|high",
     "of products of float32 numbers (default highest); high: three bfloat16 products on AMX, TF32 on a GPU"},
    {"deterministic", FLAG, FIELD(deterministic), RUNS | CLI_BENCH, NULL,
     "the same bits in every run on a GPU too, more slowly (docs/NUMERICS.md); elsewhere they always are"},
    {"memory", MEMORY, FIELD(memory), RUNS | CLI_BENCH, "auto|fast|least|SIZE",
     "whether 16-bit copies of weights and stored gradients may take memory where they save time (default "
     "auto: up to 4 MiB, and where the processor multiplies 16-bit numbers), or a budget such as 512MiB or "
     "1.5GiB, to which values of the forward pass are computed again; the numbers are the same"},
    {"remat", REMAT, FIELD(remat), CLI_TRAIN | CLI_NUMERICS | CLI_COMPILE | CLI_BENCH,
     "full|activations|larger_than[:N]|list_of_layers:A,B,...",
     "layers that are computed again for the backward pass, as in Keras's RematScope: all, their "
     "activations, those with results of more than N elements (default 1024), or these; the numbers are the "
     "same"},
    {"jit-compile", FLAG, FIELD(jit_compile), CLI_TRAIN | CLI_TUNE | CLI_COMPILE | CLI_BENCH, NULL,
     "keep fused 16-bit values in float32 (docs/NUMERICS.md): faster, with different rounding"},
    {"graph-rewrite", CHOICE, FIELD(graph_rewrite), TRAINS & ~CLI_TUNE, "float16|bfloat16",
     "rewrite a float32 model to 16 bits instead of using a policy"},
    {"loop", CHOICE, FIELD(loop), CLI_TRAIN | CLI_COMPILE, "fit|custom",
     "train with fit, or with a custom loop and a gradient tape (default fit)", "fit"},
    {"device", DEVICE, FIELD(device), RUNS | CLI_SUMMARY | CLI_BENCH, MIX_DEVICE_CHOICES,
     "default MIXTAPE_DEVICE or cpu; cuda: an NVIDIA GPU by XLA's plug-in; auto: cuda where it can be used, "
     "else cpu; xla: programs compiled by XLA, run by the PJRT plug-in of that path, or of "
     "MIXTAPE_PJRT_PLUGIN"},
    {"target", TEXT, FIELD(target), CLI_COMPILE, "NAME|FILE.txtpb",
     "the GPU: v100, t4, a100, a10, l4, l40s, h100, h200 or b200, or a file of its facts, a "
     "GpuTargetConfigProto of XLA as text"},
    {"distribute", CHOICE, FIELD(distribute), CLI_TRAIN, "none|mpi",
     "mpi: train in all processes that mpirun or srun started, each on its share of every batch, with "
     "either loop; --batch-size counts all rows, rank 0 prints and saves (default none)",
     "none"},
    {"shard", CHOICE, FIELD(shard), CLI_TRAIN, "none|optimizer",
     "optimizer: with --distribute mpi each rank holds its share of the optimizer's state alone; the numbers "
     "are the same (default none)",
     "none"},
    {"threads", THREADS, FIELD(threads), RUNS | CLI_BENCH, "N",
     "threads (default: the cores this process may use)"},
    {"verbose", LEVEL, FIELD(verbose), CLI_TRAIN | CLI_EVALUATE, "0|1|2",
     "0: silent, 1: progress bar, 2: one line per epoch"},
    {"init-weights", PATH, FIELD(init_weights), RUNS, "FILE",
     "start from these weights: .npz, .safetensors, or of Keras"},
    {"weight-map", PATH, FIELD(weight_map), RUNS, "FILE.json|NAME",
     "of --init-weights FILE.safetensors: which tensor becomes which weight, where names or axes differ; or "
     "the library's own for files of transformers: gpt2, llama, bert"},
    {"save", PATH, FIELD(save), CLI_TRAIN,
     "FILE.keras|FILE.h5|FILE.weights.h5|FILE.weights.json|FILE.npz|FILE.safetensors|FOLDER/",
     "write the model after training (.keras, .h5; of KerasHub also a folder), or its weights"},
    {"max-shard-size", GIGABYTES, FIELD(max_shard_size), CLI_TRAIN, "GB",
     "of --save FILE.weights.json: an index beside files of at most so many GB (2^30 bytes) of weights each"},
    {"save", PATH, FIELD(save), CLI_TUNE, "FILE.keras|FILE.h5",
     "write the model, not trained, with the layers that were found in float32"},
    {"onnx", TEXT, FIELD(onnx), CLI_TUNE, "FILE.onnx",
     "write the model with the float32 layers that were found as ONNX, its weights as they are now"},
    {"save-policy-map", TEXT, FIELD(save_policy_map), CLI_TUNE, "FILE.json",
     "write the layers that were found as a map of policies, for --policy-map and for Keras 3"},
    {"checkpoint", TEXT, FIELD(checkpoint), CLI_TRAIN, "DIR",
     "save the training state in DIR after each epoch and when --steps ends training; keeps the last two"},
    {"checkpoint-freq", FREQUENCY, FIELD(checkpoint_freq), CLI_TRAIN, "epoch|N",
     "save the training state after each epoch (default) or every N steps"},
    {"resume", RESUME, FIELD(resume), CLI_TRAIN, "[=force]",
     "continue bit for bit from the newest checkpoint in DIR, or start if there is none; without --resume a "
     "DIR with checkpoints is an error. force: also from the checkpoint of another run, which begins its "
     "epoch anew"},
    {"step-log", TEXT, FIELD(step_log), CLI_TRAIN, "FILE.jsonl", "write one line of JSON per step"},
    {"trace", TEXT, FIELD(trace), CLI_TRAIN | CLI_EVALUATE | CLI_PREDICT | CLI_BENCH, "FILE.json",
     "write when each kernel of the first 10 steps ran, and where, for https://ui.perfetto.dev or "
     "chrome://tracing"},
    {"output", PATH, FIELD(output), CLI_PREDICT, "FILE.npz|FILE.npy",
     "write the outputs: y, or y_0, y_1, ...; an .npy has the only one (default: print the classes to "
     "standard output)"},
    {"output", PATH, FIELD(output), CLI_SUMMARY, "FILE.dot|FILE.svg|FILE.png",
     "draw the model as a graph of its layers instead of printing the table; .svg and .png need the program "
     "dot of graphviz, which draws up to 800 layers"},
    {"only", CHOICE, FIELD(only), CLI_BENCH, "steps|layers|pipeline",
     "one table: steps of each policy, layers (and image models), or pipeline (what feeds them)"},
    {"advise", FLAG, FIELD(advise), CLI_BENCH, NULL,
     "measure nothing: say which layers gain from --policy on this machine, and why"},
    {"quick", FLAG, FIELD(quick), CLI_BENCH, NULL, "fewer rounds and smaller models"},
    {"format", CHOICE, FIELD(format), CLI_NUMERICS, "table|json",
     "format of the report on standard output (default table)"},
    {"all", FLAG, FIELD(all), CLI_NUMERICS, NULL, "show all intermediate values in the table"},
    {"png", PATH, FIELD(png), CLI_NUMERICS, "FILE.png",
     "draw the report: a strip of magnitudes for each tensor"},
    {"html", PATH, FIELD(html), CLI_NUMERICS, "FILE.html",
     "write the report as a page with strips, curves of loss and loss scale, and the advice"},
    {"json", FLAG, FIELD(json), CLI_TRAIN | CLI_EVALUATE | CLI_BENCH | CLI_NUMERICS | CLI_TUNE, NULL,
     "print one JSON object to standard output"},
};
_Static_assert(sizeof cli_option_rows / sizeof *cli_option_rows == CLI_OPTION_ROWS,
               "CLI_OPTION_ROWS counts the rows");
