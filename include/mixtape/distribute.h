/* Data parallel training in several processes. Each process (a rank) holds the whole model and computes its
 * share of every batch; gradients, losses and metrics are summed over the ranks, so that all ranks hold the
 * same weights, bit for bit. Start the program under mpirun or srun (docs/MPI.md):
 *
 *   mix_set_distribution(mix_distribution_mpi());
 *   ... mix_model_fit(...) as in one process: batch_size counts the rows of all ranks ...
 *   mix_set_distribution(NULL);
 *
 * Every rank must make the same collective calls in the same order, with the same options and seed, and the
 * same data, unless `.rows = MIX_LOCAL` says that each has rows of its own (mixtape/model.h). Collective are
 *   mix_model_fit, mix_model_evaluate, and both as validation or in callbacks,
 *   mix_numerics_run, which is a fit with shared data,
 *   mix_model_train_on_batch, mix_model_test_on_batch, and both with options,
 *   mix_all_reduce, mix_broadcast, mix_all_gather, mix_broadcast_variables,
 *   mix_optimizer_apply, mix_optimizer_apply_gradients, mix_optimizer_minimize,
 *   mix_loss_call with another reduction than `sum` or none,
 *   the call of a model or layer in training if it has a BatchNormalization,
 *   functions of mix_function that make such calls, each time they run, and functions of your own that make
 *   them, such as the runs of mix_tune_precision,
 *   mix_distribution_mpi, mix_distribution_mpi_from, mix_distribution_shard,
 *   mix_optimizer_gather_state, and mix_optimizer_finalize_variable_values of an optimizer whose state is
 *   divided among the ranks,
 *   the end of the distribution: mix_set_distribution(NULL) and its last release.
 * All others are a rank's own, which may call them alone: mix_model_predict, calls of models in inference,
 * reading, saving and loading. What one rank loads or sets, another does not have before the next fit. */
#ifndef MIXTAPE_DISTRIBUTE_H
#define MIXTAPE_DISTRIBUTE_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_distribution mix_distribution;

/* The processes that mpirun or srun started together with this one. It loads the plug-in of their MPI
 * flavour, and the path in MIXTAPE_MPI_PLUGIN in place of it. In a process that was started by itself it is a
 * distribution of one rank, and MPI is not loaded. A process has one; later calls return the same. OSError if
 * there is no plug-in, RuntimeError if MPI does not start, or not within MIXTAPE_MPI_TIMEOUT seconds (60). In
 * a program that starts MPI itself it is an error: use mix_distribution_mpi_of. Scoped. */
MIX_API mix_distribution *mix_distribution_mpi(void);
/* The processes of a communicator of the host program, which starts and ends MPI itself: all its ranks make
 * this call, together, and wait for each other (MIXTAPE_MPI_TIMEOUT). In C it is
 * mix_distribution_mpi_of(comm) of mixtape/mpi.h; here `communicator` is the Fortran handle, which is an int
 * in every flavour. `flavor` ("openmpi", "mpich") says which MPI a program has that loaded it locally; NULL:
 * it is asked. Messages go through a duplicate, and which threads may make collective calls follows from the
 * program's MPI_THREAD level (docs/MPI.md). Each call makes another distribution, whose end is collective and
 * comes before MPI_Finalize: it is no longer set, and released for the last time. Scoped. RuntimeError if MPI
 * has not started, has ended, or if ranks do not come; ValueError for an unknown flavour, or another than
 * that of the MPI which the process has loaded; OSError if there is no plug-in. */
MIX_API mix_distribution *mix_distribution_mpi_from(int communicator, const char *flavor);
/* Sets the distribution of the process, which training and collectives use from now on. NULL: none. If nobody
 * has set the number of threads, the ranks of a machine share its cores, unless the launcher has bound them
 * to cores of their own. It holds for all threads; functions and models are compiled for each distribution
 * under which they run. Setting NULL and releasing the last reference ends MPI, together with all ranks,
 * unless MPI is a host program's. While an error is pending it does nothing: a program that ends after one
 * calls mix_error_clear first. */
MIX_API mix_status mix_set_distribution(mix_distribution *distribution);
/* The distribution in force, borrowed; NULL: none. */
MIX_API mix_distribution *mix_distribution_current(void);
/* From 0 to size - 1; 0 for NULL. */
MIX_API int mix_distribution_rank(const mix_distribution *distribution);
/* The number of ranks; 1 for NULL. */
MIX_API int mix_distribution_size(const mix_distribution *distribution);
/* Ends the processes of all ranks, this one too, with this exit code: for a rank that cannot go on. First
 * flushes standard output and error and waits a moment, so that the launcher passes on what was printed.
 * Returns if the job cannot be ended within a second more; then end this process, and the launcher ends the
 * others. */
MIX_API void mix_distribution_end_job(mix_distribution *distribution, int code);

/* What is divided among the ranks, and not the same on each. */
typedef enum mix_shard {
  MIX_SHARD_NOTHING,
  /* The state of optimizers: slots, moving averages, accumulated gradients, what Kahan's rounding keeps; and
   * float32 weights of which captured training reads a 16-bit form alone, which every rank has. */
  MIX_SHARD_OPTIMIZER,
} mix_shard;
/* Says what optimizers divide from their next step on: each variable has an owner, or each rank some of its
 * rows, which alone has its state and gets its gradient, and sends the weight to all. The bits of a training
 * are those of MIX_SHARD_NOTHING with as many ranks. To read or save the state, or such weights other than
 * after a fit, all ranks call mix_optimizer_gather_state first (mixtape/optimizer.h); what has not been
 * gathered since the latest step is a RuntimeError where it is read. After a RuntimeError of communication
 * weights may be partly new, and nothing is gathered any more: the run goes on from its last checkpoint, in
 * new processes. Collective. ValueError for an unknown kind, where ranks give different ones,
 * and for a distribution of one rank. */
MIX_API mix_status mix_distribution_shard(mix_distribution *distribution, mix_shard shard);

/* Seconds of communication so far on this rank. */
typedef struct mix_distribution_times {
  double communication; /* the communication thread at work */
  double waited;        /* steps waited for it; the rest was hidden behind computing */
} mix_distribution_times;
MIX_API mix_distribution_times mix_distribution_measured(const mix_distribution *distribution);

/* The sum of x over the ranks, on every rank; x itself in one process. Elements are added in the order of the
 * ranks, 16-bit ones in float32, and rounded once. The gradient is the sum of the ranks' gradients. Outside a
 * function it is computed at once. */
MIX_API mix_tensor *mix_all_reduce(mix_tensor *x);
/* x of rank `root` on every rank. Not differentiable. ValueError if there is no such rank. */
MIX_API mix_tensor *mix_broadcast(mix_tensor *x, int root);
/* The x of all ranks, (rows, ...), one after the other: (ranks * rows, ...). All have the same shape. Not
 * differentiable. */
MIX_API mix_tensor *mix_all_gather(mix_tensor *x);
/* Replaces the values of variables by those of rank 0. A fit does it at its start. */
MIX_API mix_status mix_broadcast_variables(mix_list *variables);

MIX_END_DECLARATIONS
#endif
