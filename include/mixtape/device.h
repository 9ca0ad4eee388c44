/* Devices, threads and numerical settings of the process. */
#ifndef MIXTAPE_DEVICE_H
#define MIXTAPE_DEVICE_H

#include <mixtape/dtype.h>

MIX_BEGIN_DECLARATIONS

/* Selects the device: "cpu" (the default), "ref" (the scalar reference), "cuda" (an NVIDIA GPU by XLA's
 * plug-in; "cuda:1" the second one), "xla" (a PJRT plug-in, that of MIXTAPE_PJRT_PLUGIN), "xla:PATH" (the
 * plug-in there) or "auto" ("cuda" where it can be used, else "cpu"). MIXTAPE_DEVICE sets the initial value,
 * MIXTAPE_DEVICE_MEMORY how much memory of a GPU is taken: "grow" (the default: as needed, up to 0.9 of it),
 * or at once a share such as "0.9" or an amount such as "8GiB". A device that is not available is an error
 * that says why, and what to install. A process has one plug-in and one GPU. */
MIX_API mix_status mix_set_device(const char *name);
/* The name of the selected device. */
MIX_API const char *mix_device(void);
/* Threads and processes. A child, by fork, of a process that has run a plan on several threads runs every
 * plan on one thread, with the same bits; other children have all threads. Fork while no other thread is in a
 * call of this library, as POSIX demands of every library with locks, and end the child by exit, _exit or
 * exec, not by pthread_exit. */
/* Sets the maximum number of threads of a plan. 0: OMP_NUM_THREADS, else the cores that this process may
 * run on: its affinity, and whole cores of the CPU quota of its control groups (version 1 or 2), read once.
 * MIXTAPE_THREADS sets the initial value. Plans with too little work to gain use one thread. The choice
 * depends on shapes, dtypes and the processor, never on the machine's load. */
MIX_API mix_status mix_set_threads(int threads);
/* The number of threads in use, never 0. */
MIX_API int mix_threads(void);
/* Waits until the device has finished all runs. A device with a queue reports errors that depend on values (a
 * label outside the classes) here, or when a value is read; on "cpu" and "ref" the call itself does. After
 * such an error no run has written a variable. */
MIX_API mix_status mix_synchronize(void);
/* Sets how products of 16-bit numbers are summed. "exact": in float32. "blocked": where the processor has
 * AVX512-FP16, in blocks of four float16 chains of 16 products, whose sums are added in float32. "auto" (the
 * default): blocked on processors with AVX512-FP16 and no AMX, else exact; there products of at least 2^26
 * multiplications and 32 rows have chains of 32 products. Where no kernel sums in blocks (another processor,
 * few rows or columns) products are exact in any case. MIXTAPE_ACCUMULATE sets the initial value. */
MIX_API mix_status mix_set_accumulate(const char *name);
/* The name of the setting; may be "auto". */
MIX_API const char *mix_accumulate(void);
/* How large products of a dtype are summed under that setting on this machine: "exact" or "blocked". */
MIX_API const char *mix_accumulate_in_force(mix_dtype dtype);
/* Sets the precision of products of float32 matrices: "highest" (the default: float32 throughout) or
 * "high". "high" computes large products on processors with AMX as three products of bfloat16 with float32
 * sums, about twice as fast. Each element errs by at most (2^-13 + k 2^-21) of |A||B|, in practice 5e-6 of
 * the result's size (docs/NUMERICS.md). On a GPU "high" is TF32: operands of 11 bits.
 * MIXTAPE_FLOAT32_PRECISION sets the initial value. */
MIX_API mix_status mix_set_float32_precision(const char *name);
/* The name of the selected precision. */
MIX_API const char *mix_float32_precision_name(void);
/* True: programs for a GPU give the same bits in every run on it, more slowly: no kernel is chosen by timing,
 * none adds in an order that changes. All other devices always do, and ignore it. Set it before the functions
 * are first called. MIXTAPE_DETERMINISTIC ("on", "off") sets the initial value; off is the default. */
MIX_API mix_status mix_set_deterministic(bool on);
MIX_API bool mix_deterministic(void);
/* Sets what products of 16-bit numbers may spend memory on. "fast": 16-bit copies of weights live beside the
 * float32 weights, and gradients that wait for the finite test are stored. "least": products, if they can,
 * round the float32 weights as they read them, and gradients of weights larger than the operands of their
 * product are computed a second time for the update where the test cannot be proven beforehand. "auto" (the
 * default): as "fast" outside of training steps, and for each product that the processor multiplies as 16
 * bits. The other products of a training step, which are multiplied in float32, are as "fast" while the
 * copies of all their weights take at most 4 MiB, else as "least"; and so for the gradients, of which only
 * those of 4 MiB or more, and at least four times the operands, are computed again. Weights that a function
 * only reads, frozen ones of a training step too, stay packed between its calls, once for all functions that
 * pack them alike, up to 256 MiB in all and where that much is free: under "auto" if it writes fewer bytes of
 * weights and slots than it only reads, each in one place (not beside LoRA, where gradients pass frozen
 * kernels too), and if its plan fits the budget with them; under "fast" in any case, and under "least" never.
 * The bits are the same. MIXTAPE_MEMORY sets the initial value. An amount such as "512MiB" or "1.5GB" (B, KB,
 * MB, GB, TB, KiB, MiB, GiB, TiB) in either place is a budget instead, as by the next function. */
MIX_API mix_status mix_set_memory(const char *name);
/* The name of the setting. */
MIX_API const char *mix_memory_name(void);
/* Sets how many bytes the plan of a function (mixtape/function.h), and so a step of fit, evaluate or predict,
 * may take: the peak_bytes of its report, with the variables that the step reads or writes, its arguments and
 * its results. 0 (the default): any number. Where a plan takes more, values of the forward pass are not kept
 * until the backward pass but computed again, and "least" is chosen where that costs less. The bits are the
 * same. A plan that does not fit is a MemoryError of the call that needs it, before anything runs: it has the
 * smallest budget that was found, and what takes the bytes. Evaluation outside of functions has no budget. A
 * device that plans by itself (mix_set_device: "xla", "cuda") refuses a budget. With several processes every
 * one must have the same. */
MIX_API mix_status mix_set_memory_budget(size_t bytes);
/* The budget in bytes; 0: none. */
MIX_API size_t mix_memory_budget(void);
/* A text with one line each for devices, instruction sets found and in use (MIXTAPE_MAX_ISA limits them),
 * and the kernels for products of each dtype, with the reason for what is unavailable. Valid until the
 * next call on this thread. */
MIX_API const char *mix_devices_text(void);

MIX_END_DECLARATIONS
#endif
