/* Code that must stay loaded. */
#ifndef MIX_BASE_LOADED_H
#define MIX_BASE_LOADED_H

/* Keeps the shared object that contains this function or datum in the process, also after dlclose. Call it
 * before the address is given to what may run later: a thread, or a destructor at a thread's end. */
void mix_keep_loaded(const void *address);
/* The same for the object that this library is linked into. */
void mix_keep_library_loaded(void);

#endif
