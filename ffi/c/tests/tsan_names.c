/* Names that the compiler of the library calls and an older ThreadSanitizer run-time library does
 * not have: they are its memcpy and the like. */
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int value, size_t size);

/* Weak: a newer run-time library has its own. */
__attribute__((weak)) void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    return memcpy(to, from, size);
}

__attribute__((weak)) void *__tsan_memmove(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}

__attribute__((weak)) void *__tsan_memset(void *to, int value, size_t size)
{
    return memset(to, value, size);
}
